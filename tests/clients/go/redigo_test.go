// Tests every command with redigo, a Go client that has one method for all commands and speaks RESP2.
package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

type row struct {
	words []string
	reply interface{}
}

// rows returns the rows of commands.json that are not remarks.
func rows(t *testing.T) (found []row) {
	text, err := os.ReadFile("../commands.json")
	check(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var all [][]interface{}
	check(t, decoder.Decode(&all))
	for _, entry := range all {
		if len(entry) == 2 {
			var words []string
			for _, word := range entry[0].([]interface{}) {
				words = append(words, word.(string))
			}
			found = append(found, row{words, entry[1]})
		}
	}
	return found
}

// bytes returns a text as bytes, one for each character.
func bytes(text string) string {
	var found []byte
	for _, character := range text {
		found = append(found, byte(character))
	}
	return string(found)
}

// expected converts a reply of commands.json to RESP2, with quoted texts.
func expected(reply interface{}) interface{} {
	switch reply := reply.(type) {
	case bool:
		if reply {
			return 1
		}
		return 0
	case string:
		return strconv.Quote(bytes(reply))
	case []interface{}:
		list := []string{}
		for _, element := range reply {
			list = append(list, fmt.Sprint(expected(element)))
		}
		return list
	case map[string]interface{}:
		if text, ok := reply["double"]; ok {
			return expected(text)
		} else if members, ok := reply["sorted"]; ok {
			return expected(members)
		} else if lines, ok := reply["field"]; ok {
			for _, value := range lines.(map[string]interface{}) {
				return expected([]interface{}{value})
			}
		}
		// Maps are sorted, because maps in Go have no order.
		lines := []string{}
		for name, value := range reply["map"].(map[string]interface{}) {
			if value != "any" {
				lines = append(lines, fmt.Sprint(expected(name), " ", expected(value)))
			}
		}
		sort.Strings(lines)
		return lines
	}
	return reply
}

// found converts a reply of redigo to the form of expected.
func found(reply interface{}, pattern interface{}) interface{} {
	switch reply := reply.(type) {
	case []byte:
		return strconv.Quote(string(reply))
	case string:
		return strconv.Quote(reply)
	case []interface{}:
		list := []string{}
		for _, element := range reply {
			list = append(list, fmt.Sprint(found(element, nil)))
		}
		kinds, _ := pattern.(map[string]interface{})
		if lines, ok := kinds["map"].(map[string]interface{}); ok {
			pairs := []string{}
			for at := 0; at < len(list); at += 2 {
				if name, _ := strconv.Unquote(list[at]); lines[name] != "any" {
					pairs = append(pairs, list[at]+" "+list[at+1])
				}
			}
			list = pairs
		}
		if kinds["map"] != nil || kinds["sorted"] != nil {
			sort.Strings(list)
		}
		return list
	}
	return reply
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T) redis.Conn {
	client, err := redis.DialURL(os.Getenv("ROLLCALL_URL"))
	check(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestEveryCommand(t *testing.T) {
	client := connect(t)
	for _, row := range rows(t) {
		var arguments []interface{}
		for _, word := range row.words[1:] {
			if strings.HasPrefix(word, "@") {
				arguments = append(arguments, "redigo:"+word[1:])
			} else {
				arguments = append(arguments, bytes(word))
			}
		}
		reply, err := client.Do(row.words[0], arguments...)
		if kinds, ok := row.reply.(map[string]interface{}); ok && kinds["error"] != nil {
			if _, ok := err.(redis.Error); !ok || !strings.Contains(err.Error(), kinds["error"].(string)) {
				t.Errorf("%v: %v", row.words, err)
			}
			continue
		}
		check(t, err)
		if got, wanted := fmt.Sprint(found(reply, row.reply)), fmt.Sprint(expected(row.reply)); row.reply != "any" && got != wanted {
			t.Errorf("%v: %v, not %v", row.words, got, wanted)
		}
	}
}

// The error of a full filter is the last element of the reply.
func TestFullFilter(t *testing.T) {
	client := connect(t)
	_, err := client.Do("BF.RESERVE", "redigo:full", 0.001, 2, "NONSCALING")
	check(t, err)
	added, err := redis.Values(client.Do("BF.MADD", "redigo:full", "a", "b", "c", "d"))
	check(t, err)
	if !reflect.DeepEqual(added, []interface{}{int64(1), int64(1), redis.Error("ERR non scaling filter is full")}) {
		t.Error(added)
	}
}

func TestChunks(t *testing.T) {
	client := connect(t)
	_, err := client.Do("BF.RESERVE", "redigo:BF", 0.0001, 1500000)
	check(t, err)
	for family, least := range map[string]int{"BF": 2, "LC": 1} {
		key, arguments := "redigo:"+family, redis.Args{}.Add("redigo:"+family, "ITEMS")
		for number := 0; number < 5000; number++ {
			arguments = arguments.Add(number)
		}
		_, err := client.Do(family+".INSERT", arguments...)
		check(t, err)
		iterator, chunks := 0, 0
		for {
			var chunk []byte
			reply, err := redis.Values(client.Do(family+".SCANDUMP", key, iterator))
			check(t, err)
			_, err = redis.Scan(reply, &iterator, &chunk)
			check(t, err)
			if iterator == 0 {
				break
			}
			_, err = client.Do(family+".LOADCHUNK", key+":copy", iterator, chunk)
			check(t, err)
			chunks++
		}
		if chunks < least {
			t.Errorf("%s has %s chunks", family, strconv.Itoa(chunks))
		}
		original, err := redis.Bytes(client.Do("DUMP", key))
		check(t, err)
		copied, err := redis.Bytes(client.Do("DUMP", key+":copy"))
		check(t, err)
		if string(original) != string(copied) {
			t.Error("the copy differs")
		}
	}
}

func TestTransaction(t *testing.T) {
	client := connect(t)
	client.Send("MULTI")
	client.Send("BF.ADD", "redigo:f", "a")
	client.Send("LC.ADD", "redigo:c", "a", "b")
	client.Send("LC.COUNT", "redigo:f")
	replies, err := redis.Values(client.Do("EXEC"))
	check(t, err)
	failed, ok := replies[2].(redis.Error)
	if !reflect.DeepEqual(replies[:2], []interface{}{int64(1), int64(2)}) || !ok || !strings.HasPrefix(string(failed), "WRONGTYPE") {
		t.Error(replies)
	}
}

// Runs the example of docs/clients.md, which must print what its comments say.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../../docs/clients.md")
	check(t, err)
	parts := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(parts) != 1 {
		t.Fatal("one program, not ", len(parts))
	}
	program, address := parts[0][1], "redis://127.0.0.1:6379"
	var printed string
	for _, comment := range regexp.MustCompile(`(?m)fmt\.Println.*// (.*)$`).FindAllStringSubmatch(program, -1) {
		printed += comment[1] + "\n"
	}
	if strings.Count(program, address) != 1 || strings.Count(printed, "\n") < 5 {
		t.Fatal(program)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	check(t, os.WriteFile(file, []byte(strings.Replace(program, address, os.Getenv("ROLLCALL_URL"), 1)), 0o600))
	output, err := exec.Command("go", "run", file).CombinedOutput()
	if err != nil || string(output) != printed {
		t.Errorf("%s\n%v", output, err)
	}
}

// Checks the members in the table of docs/clients.md.
func TestMembers(t *testing.T) {
	client := connect(t)
	page, err := os.ReadFile("../../../docs/clients.md")
	check(t, err)
	cells := regexp.MustCompile("(?m)^\\| redigo \\| (.*) \\|$").FindStringSubmatch(string(page))
	if len(cells) != 2 {
		t.Fatal("a row of redigo")
	}
	tenth := 0.1 // The sum is computed at run time, because Go adds constants exactly.
	var found []string
	for _, value := range []interface{}{1.0, tenth + 0.2, 1e16, 1e21, true, nil} {
		_, err := client.Do("DEL", "members")
		check(t, err)
		_, err = client.Do("LC.ADD", "members", value)
		check(t, err)
		members, err := redis.Strings(client.Do("LC.MEMBERS", "members"))
		check(t, err)
		found = append(found, "`"+strings.Join(members, " ")+"`")
	}
	shown := strings.ReplaceAll(strings.Join(found, " | "), "``", "empty")
	if shown != cells[1] {
		t.Error(shown)
	}
}
