(** What the probing process (--probe) times. Without [start] no clock is read. *)

val start : unit -> unit

(** [timed build depth] is [build depth]; the longest one of each depth is kept. *)
val timed : (int -> 'tree) -> int -> 'tree

(** Prints the figures to stderr. *)
val report : unit -> unit
