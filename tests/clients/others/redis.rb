# Sends each input line by redis-rb, and prints the reply. A line is a list of words in JSON, and a character is a
# byte.
require "json"
require "redis"

redis = Redis.new(host: ARGV[0], port: ARGV[1].to_i, timeout: 60)
$stdin.set_encoding("UTF-8")
$stdout.sync = true

def bytes(word)
  word.is_a?(String) ? word.encode("ISO-8859-1").b : word
end

def text(reply)
  case reply
  when Array then reply.map { |element| text(element) }
  when String then reply.dup.force_encoding("ISO-8859-1").encode("UTF-8")
  when StandardError then { error: reply.message }
  else reply
  end
end

$stdin.each_line do |line|
  reply = begin
    redis.call(*JSON.parse(line).map { |word| bytes(word) })
  rescue Redis::BaseError => error
    error
  end
  puts JSON.generate(text(reply))
end
