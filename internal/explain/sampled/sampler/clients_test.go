package sampler

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestClientSockets(t *testing.T) {
	const header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	line := func(port, state, inode string) string {
		return "   0: 0100007F:" + port + " 0100007F:A1B2 " + state + " 00000000:00000000 00:00000000 00000000     0        0 " + inode + " 1 0\n"
	}
	list := header + line("1F90", listening, "10") + line("1F90", established, "11") + line("A1B2", established, "12") +
		line("1F90", "06", "0") + line("1F90", closeWait, "13") + "damaged\n"
	got := clientSockets(strings.NewReader(list), nil)
	if len(got) != 2 || !got["socket:[11]"] || !got["socket:[13]"] {
		t.Errorf("sockets of clients: %v", got)
	}
	if more := clientSockets(strings.NewReader(header), got); len(more) != 2 {
		t.Errorf("with a list of none: %v", more)
	}
}

// A process that accepted a connection serves, one that only connects does not, and of one that cannot be read it is not known.
func TestClients(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	here, there := os.Getpid(), other.Process.Pid
	const nobody = 1 << 30
	c := clients{proc: "/proc", serves: map[int]bool{}, unread: map[int]bool{}}
	c.look([]int{here, there, nobody})
	if !c.of(uint32(there)) {
		t.Error("before any client is seen it is not known who serves")
	}
	asks, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer asks.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	c.look([]int{here, there, nobody})
	got := []bool{c.of(uint32(here)), c.of(uint32(there)), c.of(nobody)}
	if want := []bool{true, false, true}; !slices.Equal(got, want) {
		t.Errorf("serve: %v, want %v", got, want)
	}
}
