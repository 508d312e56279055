#!/usr/bin/env bash
# Expected: an error inside a reply is an element of it, or makes the command fail.
# Seen: Debian's Redis 2.000 for Perl dies at the error, and leaves the rest of the reply unread. From then on,
# every command on the connection gets the reply to an earlier one: GET of one key returns the value of another.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
debs perl-redis libredis-perl

port=$(free_port)
start redis-7.0.15 "$port"
cat >"$work/shift.pl" <<'P'
use strict;
use warnings;
use Redis;
print "Redis $Redis::VERSION\n";
my $redis = Redis->new(server => "127.0.0.1:$ARGV[0]");
$redis->set("name", "ann");
$redis->set("age", "7");
my $reply = eval { $redis->eval("return {1, redis.error_reply('ERR two'), 3}", 0) };
print "script: ", defined $reply ? "replies" : $@ =~ /ERR two/ ? "dies" : $@, "\n";
print "$_: ", $redis->get($_), "\n" for "name", "age";
P
perl -I "$cache/perl-redis/usr/share/perl5" "$work/shift.pl" "$port" | tee "$work/seen"
expect "seen" "$(sed 1d "$work/seen" | paste -sd ,)" "script: dies,name: 3,age: ann"
