(** The timings of the probing process (--probe). Without [start] no clock is read. *)

val start : unit -> unit

(** [timed build depth] calls [build depth], and keeps the longest time of each depth. *)
val timed : (int -> 'tree) -> int -> 'tree

(** Prints the figures to stderr. *)
val report : unit -> unit
