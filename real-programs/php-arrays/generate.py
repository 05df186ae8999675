"""Writes work.php: arrays, strings and objects, SIZE of them."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("work.php", "w") as file:
    file.write("<?php\nini_set('memory_limit', -1);\n$state = %d;\n$size = %d;\n" % (seed, size))
    file.write('''function draw($below) {
    global $state;
    $state = ($state * 1103515245 + 12345) % 2147483648;
    return intdiv($state, 65536) % $below;
}
$sum = 0;
for ($round = 0; $round < 3; $round++) {
    $users = [];
    for ($at = 0; $at < $size; $at++) {
        $name = 'user' . draw(50000) . str_repeat('x', draw(60));
        $user = new stdClass();
        $user->name = $name;
        $user->tags = explode(',', 'a' . draw(9) . ',b' . draw(99) . ',c' . draw(999));
        $users[$name][] = $user;
    }
    ksort($users);
    foreach ($users as $name => $same) {
        $text = json_encode($same);
        $sum = ($sum * 31 + crc32($text)) % 1000000007;
        if ($sum % 2) {
            unset($users[$name]);
        }
    }
}
echo count($users), ' ', $sum, "\\n";
''')
