-- The timings of the probing process (--probe).
module Probe (Probe, none, start, timed, report) where

import Control.Monad (forM_, when)
import Data.Array.IO (IOUArray, getAssocs, newArray, readArray, writeArray)
import Data.Word (Word64)
import GHC.Clock (getMonotonicTimeNSec)
import System.IO (hFlush, hPutStrLn, stderr, stdout)

-- The longest building in ns, by depth. Without it no clock is read.
newtype Probe = Probe (Maybe (IOUArray Int Word64))

none :: Probe
none = Probe Nothing

start :: IO Probe
start = Probe . Just <$> newArray (0, 63) 0

timed :: Probe -> Int -> IO tree -> IO tree
timed (Probe Nothing) _ build = build
timed (Probe (Just longest)) depth build = do
  began <- getMonotonicTimeNSec
  tree <- build
  ended <- getMonotonicTimeNSec
  before <- readArray longest depth
  writeArray longest depth $! max before (ended - began)
  return tree

foreign import ccall "probe_report_pauses" reportPauses :: IO ()

-- Prints the figures to stderr.
report :: Probe -> IO ()
report (Probe Nothing) = return ()
report (Probe (Just longest)) = do
  hFlush stdout
  depths <- getAssocs longest
  forM_ depths $ \(depth, ns) ->
    when (ns > 0) $ hPutStrLn stderr ("figure=depth_" ++ show depth ++ "_longest_build_ns " ++ show ns)
  reportPauses
