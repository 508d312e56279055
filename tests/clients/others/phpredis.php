<?php
// Sends each input line by phpredis, and prints the reply. A line is a list of words in JSON, and a character is a
// byte.
$redis = new Redis();
$redis->connect($argv[1], (int) $argv[2], 60);
$redis->setOption(Redis::OPT_REPLY_LITERAL, true);

function bytes($word) {
    return is_string($word) ? iconv("UTF-8", "ISO-8859-1", $word) : $word;
}

function text($reply) {
    if (is_array($reply)) {
        return array_map("text", $reply);
    }
    return is_string($reply) ? iconv("ISO-8859-1", "UTF-8", $reply) : $reply;
}

while (($line = fgets(STDIN)) !== false) {
    $redis->clearLastError();
    try {
        $reply = text(@$redis->rawCommand(...array_map("bytes", json_decode($line))));
        $error = $reply === false ? $redis->getLastError() : null;
    } catch (Throwable $thrown) {
        $error = $thrown->getMessage();
    }
    echo json_encode($error === null ? $reply : ["error" => $error], JSON_THROW_ON_ERROR), "\n";
}
