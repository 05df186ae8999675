-- Binary trees in Haskell. A tree is released by becoming unreachable; the generational collector copies live nodes.
-- Trees are built by actions, not by pure functions: the compiler may share those between iterations, or never run them.
-- Nodes are a header and two fields: 24 bytes.
module Main (main) where

import Control.Monad (forM_)
import Data.Bits (shiftL)
import System.Environment (getArgs)
import System.Exit (ExitCode (ExitFailure), exitWith)
import System.IO (hPutStrLn, stderr)
import Text.Printf (printf)
import Text.Read (readMaybe)

import Probe (Probe)
import qualified Probe

data Tree = Empty | Node Tree Tree

-- The empty tree is an argument. If its constructor were used here, the node of two empty trees would be a constant in
-- the executable, and half of the nodes would never be allocated.
build :: Tree -> Int -> IO Tree
build empty 0 = return (Node empty empty)
build empty depth = do
  left <- build empty (depth - 1)
  right <- build empty (depth - 1)
  return (Node left right)

check :: Tree -> Int
check Empty = 0
check (Node Empty _) = 1
check (Node left right) = 1 + check left + check right

run :: Int -> Probe -> IO ()
run n probe = do
  stretched <- build Empty stretch
  printf "stretch tree of depth %d\t check: %d\n" stretch (check stretched)
  longLived <- build Empty maxDepth
  forM_ [minDepth, minDepth + 2 .. maxDepth] $ \depth -> do
    let iterations = 1 `shiftL` (maxDepth - depth + minDepth) :: Int
        loop :: Int -> Int -> IO Int
        loop 0 total = return total
        loop left total = do
          tree <- Probe.timed probe depth (build Empty depth)
          loop (left - 1) $! total + check tree
    total <- loop iterations 0
    printf "%d\t trees of depth %d\t check: %d\n" iterations depth total
  printf "long lived tree of depth %d\t check: %d\n" maxDepth (check longLived)
  where
    minDepth = 4
    maxDepth = max n (minDepth + 2)
    stretch = maxDepth + 1

main :: IO ()
main = do
  arguments <- getArgs
  case arguments of
    [word] | Just n <- number word -> run n Probe.none
    [word, "--probe"] | Just n <- number word -> do
      probe <- Probe.start
      run n probe
      Probe.report probe
    _ -> do
      hPutStrLn stderr "usage: trees N [--probe], where N is a whole number"
      exitWith (ExitFailure 2)
  where
    number word = case readMaybe word of
      Just n | n >= 0 -> Just n
      _ -> Nothing
