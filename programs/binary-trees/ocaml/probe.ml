external now_ns : unit -> (int[@untagged]) = "bytecode_has_no_probe" "probe_now_ns" [@@noalloc]
external watch_pauses : unit -> unit = "probe_watch_pauses" [@@noalloc]
external report_pauses : unit -> unit = "probe_report_pauses" [@@noalloc]

let probing = ref false
let longest_ns = Array.make 64 0 (* by depth *)

let start () =
  probing := true;
  watch_pauses ()

let timed build depth =
  if not !probing then build depth
  else begin
    let start = now_ns () in
    let tree = build depth in
    longest_ns.(depth) <- max longest_ns.(depth) (now_ns () - start);
    tree
  end

let report () =
  Array.iteri
    (fun depth ns -> if ns > 0 then Printf.eprintf "figure=depth_%d_longest_build_ns %d\n" depth ns)
    longest_ns;
  flush stderr;
  report_pauses ()
