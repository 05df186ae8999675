# Writes lines.txt (SIZE lines of words) and work.pl, which makes an index of them.
use strict;
use warnings;

my ($state, $size) = @ARGV;
sub draw { $state = ($state * 1103515245 + 12345) % 2147483648; return int($state / 65536) % $_[0]; }

open(my $lines, '>', 'lines.txt') or die "lines.txt: $!";
for my $line (1 .. $size) {
    print $lines join(' ', map { 'w' . draw(5000) . 'x' x draw(30) } 1 .. 6), "\n";
}
close($lines) or die "lines.txt: $!";

open(my $work, '>', 'work.pl') or die "work.pl: $!";
print $work <<'END';
use strict;
use warnings;

my (%places, %joined);
open(my $lines, '<', 'lines.txt') or die "lines.txt: $!";
while (my $line = <$lines>) {
    chomp $line;
    for my $word (split / /, $line) {
        push @{ $places{$word} }, "$.:" . length($line);
    }
}
for my $word (sort keys %places) {
    $joined{ substr($word, 0, 4) } .= join(',', reverse @{ $places{$word} }) . ';';
    delete $places{$word} if length($word) % 2;
}
my $sum = 0;
for my $start (sort keys %joined) {
    $sum = ($sum * 31 + unpack('%32C*', $joined{$start}) + length($joined{$start})) % 1000000007;
}
print scalar(keys %places), " $sum\n";
END
close($work) or die "work.pl: $!";
