(* Binary trees in OCaml. A tree is released by becoming unreachable, for the generational collector to find.
   The minor heap is 64 MiB, so that most small trees are dead before it is full and cost nothing to collect.
   Nodes are a constant leaf and a block of two fields: 24 bytes with the header. *)

type tree = Empty | Node of tree * tree

(* [Node (Empty, Empty)] is a constant: the compiler would place one in the executable and share it among all trees,
   and half of the nodes would never be allocated. It must not see the values of the fields. *)
let rec build depth =
  if depth = 0 then
    let nothing = Sys.opaque_identity Empty in
    Node (nothing, nothing)
  else
    let left = build (depth - 1) in
    let right = build (depth - 1) in
    Node (left, right)

let rec check = function
  | Empty -> 0
  | Node (Empty, _) -> 1
  | Node (left, right) -> 1 + check left + check right

let run n =
  let min_depth = 4 in
  let max_depth = max n (min_depth + 2) in
  let stretch = max_depth + 1 in
  Printf.printf "stretch tree of depth %d\t check: %d\n" stretch (check (build stretch));
  let long_lived = build max_depth in
  let depth = ref min_depth in
  while !depth <= max_depth do
    let iterations = 1 lsl (max_depth - !depth + min_depth) in
    let sum = ref 0 in
    for _ = 1 to iterations do
      sum := !sum + check (Probe.timed build !depth)
    done;
    Printf.printf "%d\t trees of depth %d\t check: %d\n" iterations !depth !sum;
    depth := !depth + 2
  done;
  Printf.printf "long lived tree of depth %d\t check: %d\n" max_depth (check long_lived)

let () =
  Gc.set { (Gc.get ()) with minor_heap_size = 8 * 1024 * 1024 (* words *) };
  match List.map (fun word -> (word, int_of_string_opt word)) (List.tl (Array.to_list Sys.argv)) with
  | [ (_, Some n) ] when n >= 0 -> run n
  | [ (_, Some n); ("--probe", _) ] when n >= 0 ->
      Probe.start ();
      run n;
      flush stdout;
      Probe.report ()
  | _ ->
      prerr_endline "usage: trees N [--probe], where N is a whole number";
      exit 2
