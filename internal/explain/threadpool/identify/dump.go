package identify

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	maxDump        = 16 << 20 // bytes of a thread dump
	maxDumpThreads = 1 << 16
	maxThreadName  = 256 // bytes of a name that we keep
)

// parseReply splits HotSpot's reply to an attach request into a line with a code, 0 for success, and the
// output.
func parseReply(reply []byte) (output []byte, err error) {
	code, output, ok := bytes.Cut(reply, []byte{'\n'})
	if !ok {
		return nil, errors.New("the JVM's reply was empty")
	}
	if string(code) != "0" {
		return nil, fmt.Errorf("the JVM refused with code %s: %s", text.Sanitize(string(code), 20),
			text.Sanitize(string(output[:min(len(output), 300)]), 300))
	}
	return output, nil
}

// parseDump returns the names in a HotSpot thread dump by nid: the thread's number in the JVM's own PID
// namespace. Each thread has a line such as
//
//	"http-nio-8080-exec-1" #34 daemon prio=5 os_prio=0 cpu=1.2ms elapsed=3.4s tid=0x00007f12 nid=0x2f1b waiting on ...
//
// (nid in decimal since JDK 19). Names are raw. parseDump misses a name with a newline, or takes it for
// another thread of the same JVM. That harms only the JVM's own names.
func parseDump(dump []byte) map[uint32]string {
	names := map[uint32]string{}
	for len(dump) > 0 && len(names) < maxDumpThreads {
		var line []byte
		line, dump, _ = bytes.Cut(dump, []byte{'\n'})
		name, nid, ok := parseThread(string(line))
		if ok {
			names[nid] = name
		}
	}
	return names
}

func parseThread(line string) (name string, nid uint32, ok bool) {
	const mark = " nid="
	// The name may have quotes and marks; the text that the JVM writes after it does not.
	at := strings.LastIndex(line, mark)
	if at < 0 || line[0] != '"' {
		return "", 0, false
	}
	end := strings.LastIndexByte(line[:at], '"')
	if end < 1 {
		return "", 0, false
	}
	value, _, _ := strings.Cut(line[at+len(mark):], " ")
	base := 10
	if hex, isHex := strings.CutPrefix(value, "0x"); isHex {
		value, base = hex, 16
	}
	if !number(value, base, &nid) {
		return "", 0, false
	}
	name = line[1:end]
	return strings.Clone(name[:min(len(name), maxThreadName)]), nid, true
}
