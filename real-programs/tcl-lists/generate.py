"""Writes work.tcl, which groups SIZE records."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("work.tcl", "w") as file:
    file.write("set state %d\nset size %d\n" % (seed, size))
    file.write("""proc next {} { global state; set state [expr {($state * 1103515245 + 12345) % 2147483648}] }
proc work {size} {
    set groups [dict create]
    for {set at 0} {$at < $size} {incr at} {
        set tags {}
        for {set tag 0} {$tag < [next] % 5} {incr tag} { lappend tags "t[expr {[next] % 97}]" }
        dict lappend groups "name[expr {[next] % 5000}]" [list $at $tags]
    }
    set length 0
    foreach name [lsort [dict keys $groups]] {
        foreach record [lsort -integer -decreasing -index 0 [dict get $groups $name]] { incr length [string length [join $record ,]] }
    }
    puts "[dict size $groups] $length"
}
work $size
""")
