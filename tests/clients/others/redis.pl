# Sends each input line by Perl's Redis, and prints the reply. A line is a list of words in JSON, and a character is a
# byte.
use strict;
use warnings;
use JSON::PP;
use Redis;

my $redis = Redis->new(server => "$ARGV[0]:$ARGV[1]");
my $json = JSON::PP->new->utf8->allow_nonref;
$| = 1;

sub bytes {
    my $word = shift;
    return !!1 if JSON::PP::is_bool($word);
    utf8::downgrade($word) if defined $word;
    return $word;
}

while (my $line = <STDIN>) {
    my ($command, @words) = map { bytes($_) } @{ $json->decode($line) };
    my $reply = eval { $redis->$command(@words) };
    print $json->encode($@ eq '' ? $reply : { error => "$@" }), "\n";
}
