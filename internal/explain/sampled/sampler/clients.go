package sampler

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// clients are the processes that hold connections of clients: those that were made to a port at which the container listens.
type clients struct {
	proc   string
	lists  int          // of sockets that were read
	looks  int          // at the files of processes
	serves map[int]bool // by process
	unread map[int]bool // processes whose files may not be listed
}

// Bounds of clients. A connection may be short: a tenth of the moments have one open where requests take 20 ms, five times a second. To
// list sockets costs little, and the files of processes are looked at only where there is a client's.
const (
	socketLists = 60
	clientLooks = 4
	mostSockets = 1 << 20 // bytes of a list of sockets
	mostFiles   = 4096    // of a process
)

// States of a socket in /proc/PID/net/tcp (include/net/tcp_states.h).
const (
	established = "01"
	closeWait   = "08" // the client has said all that it will, and may still wait for the answer
	listening   = "0A"
)

// look looks for them. What cannot be read is not known.
func (c *clients) look(pids []int) {
	if c.lists >= socketLists || c.looks >= clientLooks || len(pids) == 0 {
		return
	}
	c.lists++
	var asked map[string]bool // the sockets of clients, as links of /proc/PID/fd name them
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(c.proc, strconv.Itoa(pids[0]), "net", name))
		if err != nil {
			continue
		}
		asked = clientSockets(io.LimitReader(f, mostSockets), asked)
		f.Close()
	}
	if len(asked) == 0 {
		return
	}
	c.looks++
	for _, pid := range pids {
		dir := filepath.Join(c.proc, strconv.Itoa(pid), "fd")
		f, err := os.Open(dir)
		if err != nil {
			c.unread[pid] = true
			continue
		}
		names, err := f.Readdirnames(mostFiles)
		f.Close()
		if len(names) == mostFiles || err != nil && err != io.EOF {
			c.unread[pid] = true
		}
		for _, name := range names {
			if link, err := os.Readlink(filepath.Join(dir, name)); err == nil && asked[link] {
				c.serves[pid] = true
				break
			}
		}
	}
}

// clientSockets adds the sockets of a list that are connected and whose port it also has one listening at.
func clientSockets(list io.Reader, to map[string]bool) map[string]bool {
	type socket struct{ port, link string }
	listens, open := map[string]bool{}, []socket(nil)
	for lines := bufio.NewScanner(list); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			continue
		}
		_, port, _ := strings.Cut(fields[1], ":")
		switch fields[3] {
		case listening:
			listens[port] = true
		case established, closeWait:
			open = append(open, socket{port, "socket:[" + fields[9] + "]"})
		}
	}
	for _, s := range open {
		if listens[s.port] {
			if to == nil {
				to = map[string]bool{}
			}
			to[s.link] = true
		}
	}
	return to
}

// of tells whether a process holds a client's connection, or that is not known.
func (c *clients) of(pid uint32) bool {
	return len(c.serves) == 0 || c.serves[int(pid)] || c.unread[int(pid)]
}
