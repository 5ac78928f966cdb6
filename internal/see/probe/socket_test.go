package probe_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// serve answers bytes and prints at which address: at a Unix socket, or at a port of its own. It also is a client of
// itself, and over TCP of the address given.
func serve(network, address string) {
	other := ""
	if network == "tcp" {
		address, other = "127.0.0.1:0", address
	}
	l, err := net.Listen(network, address)
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	fmt.Println(l.Addr())
	go echo(l)
	go ask(network, l.Addr().String(), 10*time.Millisecond, nil)
	if other != "" {
		go ask("tcp", other, 10*time.Millisecond, nil)
	}
}

// echo answers each byte with two, the second a while after the first.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := []byte{0}
			for {
				if _, err := c.Read(b); err != nil {
					return
				}
				_, _ = c.Write(b)
				time.Sleep(2 * time.Millisecond)
				_, _ = c.Write(b)
			}
		}()
	}
}

// ask sends a byte again and again over one connection and waits for the answer, until stop is closed; nil: for ever.
// It returns how often, and an error.
func ask(network, address string, pause time.Duration, stop <-chan struct{}) (n int, err error) {
	c, err := net.Dial(network, address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for b := make([]byte, 2); ; n++ {
		select {
		case <-stop:
			return n, nil
		case <-time.After(pause):
		}
		if _, err := c.Write(b[:1]); err != nil {
			return n, err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return n, err
		}
	}
}

// TestRecordingOfRequests checks that requests of a client outside are in the events, and that those of clients inside,
// and the container's own requests to others, are not.
func TestRecordingOfRequests(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			p := open(t, probe.Options{Containers: 2})
			if !p.Features().Sockets {
				t.Skip("this kernel has no tracepoints of sockets")
			}
			tr := cgrouptest.New(t)
			path := tr.Make("a")
			address := filepath.Join(t.TempDir(), "socket")
			if network == "tcp" {
				outside, err := net.Listen("tcp", "127.0.0.1:0")
				must(t, err)
				defer outside.Close()
				go echo(outside)
				address = outside.Addr().String()
			}
			server := start(t, tr, path, "serve", network, address)
			at, err := server.out.ReadString('\n')
			must(t, err)
			stop, asked := make(chan struct{}), make(chan int)
			go func() {
				n, err := ask(network, strings.TrimSpace(at), time.Millisecond, stop)
				if err != nil {
					t.Error(err)
				}
				asked <- n
			}()
			r := record(t, p, tr, container(t, tr, path), 500*time.Millisecond)
			close(stop)
			n := <-asked
			if !r.Header.Features.Sockets {
				t.Fatalf("the recording has no sockets: %q", r.Header.NotMeasured)
			}
			follow(t, r)
			exchanges(t, r, n)
		})
	}
}

// exchanges checks the reads and writes of the only client outside, which asked n times.
func exchanges(t *testing.T, r recording.Recording, n int) {
	reads, writes, twice := 0, 0, 0
	var last recording.Event
	for _, e := range r.Events {
		if e.Kind != recording.Receive && e.Kind != recording.Send {
			continue
		}
		switch {
		case e.Socket != 1:
			t.Fatalf("a connection of someone else: %+v", e)
		case e.Thread == 0:
			t.Fatalf("no thread: %+v", e)
		case e.Kind == recording.Receive && int64(e.Count) > e.AtNS+int64(time.Second):
			t.Fatalf("data that waited for %v: %+v", time.Duration(e.Count), e)
		case e.Kind == recording.Receive:
			if reads++; last.Kind == recording.Receive {
				t.Errorf("two reads without a write between: %+v, %+v", last, e)
			}
		case last.Kind == recording.Send:
			twice++
			fallthrough
		default:
			writes++
		}
		last = e
	}
	// It may ask before and after the recording.
	if reads < 10 || reads > n+1 || writes < reads || writes > 2*reads+2 || twice == 0 {
		t.Errorf("%d reads and %d writes, %d of them second ones, of %d requests", reads, writes, twice, n)
	}
}

// serveUDP answers datagrams at two addresses and prints the first. Every seventh it does not answer. It also is a client of
// its second address, and of the address given.
func serveUDP(other string) {
	at := [2]net.PacketConn{listenUDP(), listenUDP()}
	fmt.Println(at[0].LocalAddr())
	for _, address := range []string{at[1].LocalAddr().String(), other} {
		go func() { _, _ = askUDP(address, 10*time.Millisecond, nil) }()
	}
	go echoUDP(at[1], 0)
	echoUDP(at[0], 7)
}

// listenUDP listens on a port of its own choice, as servers do.
func listenUDP() net.PacketConn {
	for tries := 0; ; tries++ {
		c, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)))
		if err == nil {
			return c
		}
		if tries == 20 {
			fmt.Println(err)
			os.Exit(2)
		}
	}
}

// handOnUDP prints its address, reads datagrams on one thread, and has four others answer them: datagram n after the time of
// handedOnFor(n), of which it repeats the second byte, as servers of RADIUS do.
func handOnUDP() {
	c := listenUDP()
	fmt.Println(c.LocalAddr())
	type datagram struct {
		n    byte
		from net.Addr
	}
	work := make(chan datagram)
	for range 4 {
		go func() {
			runtime.LockOSThread()
			for d := range work {
				time.Sleep(handedOnFor(int(d.n)))
				_, _ = c.WriteTo([]byte{2, d.n}, d.from)
			}
		}()
	}
	runtime.LockOSThread()
	for b := make([]byte, 64); ; {
		if _, from, err := c.ReadFrom(b); err == nil {
			work <- datagram{b[1], from}
		}
	}
}

// handedOnFor is how long datagram n takes: of four that come together the answers are in another order.
func handedOnFor(n int) time.Duration {
	return [...]time.Duration{40, 10, 30, 20}[n%4] * time.Millisecond
}

// echoUDP answers datagrams on one thread, as servers of DNS do; of every so many it leaves one without an answer, 0: none.
func echoUDP(c net.PacketConn, dropped int) {
	runtime.LockOSThread()
	b := make([]byte, 64)
	for n := 1; ; n++ {
		_, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		if dropped > 0 && n%dropped == 0 {
			continue
		}
		time.Sleep(time.Millisecond)
		_, _ = c.WriteTo(b[:1], from)
	}
}

// askUDP sends numbered datagrams, and waits a little for each answer, until stop is closed. It returns how many
// answers came.
func askUDP(address string, pause time.Duration, stop <-chan struct{}) (answers int, err error) {
	c, err := net.Dial("udp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for b := make([]byte, 1); ; b[0]++ {
		select {
		case <-stop:
			return answers, nil
		case <-time.After(pause):
		}
		if _, err := c.Write(b); err != nil {
			return answers, err
		}
		if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			return answers, err
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			answers++
		}
	}
}

// udpServer opens a probe and starts a child in a cgroup of its own, which prints the address at which it answers.
func udpServer(t *testing.T, kind string, args ...string) (p *probe.Probe, tr *cgrouptest.Tree, path, at string) {
	t.Helper()
	p = open(t, probe.Options{Containers: 2})
	if !p.Features().Sockets {
		t.Skip("this kernel has no tracepoints of sockets")
	}
	tr = cgrouptest.New(t)
	path = tr.Make("a")
	at, err := start(t, tr, path, kind, args...).out.ReadString('\n')
	must(t, err)
	return p, tr, path, strings.TrimSpace(at)
}

// TestRecordingOfDatagrams checks that a UDP server's answers are in the events, each after the datagram that it answers,
// and that those to the container itself, and its own questions to others, are not.
func TestRecordingOfDatagrams(t *testing.T) {
	outside, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	defer outside.Close()
	go echoUDP(outside, 0)
	p, tr, path, at := udpServer(t, "serveudp", outside.LocalAddr().String())
	stop, asked := make(chan struct{}), make(chan int)
	go func() {
		n, err := askUDP(at, time.Millisecond, stop)
		if err != nil {
			t.Error(err)
		}
		asked <- n
	}()
	r := record(t, p, tr, container(t, tr, path), time.Second)
	close(stop)
	answers := <-asked
	follow(t, r)
	read, sent := map[uint32]recording.Event{}, map[uint32]bool{}
	for _, e := range r.Events {
		switch e.Kind {
		case recording.Receive:
			if _, twice := read[e.Socket]; twice || e.Thread == 0 || int64(e.Count) > e.AtNS+int64(time.Second) {
				t.Fatalf("a datagram that was read: %+v", e)
			}
			read[e.Socket] = e
		case recording.Send:
			event, ok := read[e.Socket]
			if !ok && e.AtNS < (100*time.Millisecond).Nanoseconds() {
				continue // of a datagram that was read before the recording began
			}
			if !ok || sent[e.Socket] || event.Thread != e.Thread { // echoUDP answers on the thread that reads
				t.Fatalf("an answer to none: %+v of %+v", e, event)
			}
			if took := time.Duration(e.AtNS - event.AtNS); took < time.Millisecond {
				t.Errorf("an answer after %v, and the server takes a millisecond", took)
			}
			sent[e.Socket] = true
		}
	}
	// The client asked before and after the recording, too.
	if len(sent) < 10 || len(sent) > answers || len(sent) >= len(read) {
		t.Errorf("%d datagrams were read and %d answered; the client got %d answers", len(read), len(sent), answers)
	}
}

// TestRecordingOfDatagramsHandedOn checks that answers by other threads than the one that reads are of the datagrams that they
// answer, also where a client waits for several.
func TestRecordingOfDatagramsHandedOn(t *testing.T) {
	p, tr, path, at := udpServer(t, "handonudp")
	c, err := net.Dial("udp", at)
	must(t, err)
	defer c.Close()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := byte(0); ; n += 4 { // four at once, each time
			for i := range byte(4) {
				_, _ = c.Write([]byte{1, n + i, 0, 20, 7, 7, 7, 7, 7, 7})
			}
			for range 4 {
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = c.Read(make([]byte, 8))
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	r := record(t, p, tr, container(t, tr, path), time.Second)
	close(stop)
	<-ended
	follow(t, r)
	var numbers []uint32
	read, took, by := map[uint32]recording.Event{}, map[uint32]time.Duration{}, map[uint32]bool{}
	for _, e := range r.Events {
		switch e.Kind {
		case recording.Receive:
			numbers = append(numbers, e.Socket)
			read[e.Socket] = e
		case recording.Send:
			if event, ok := read[e.Socket]; ok {
				took[e.Socket], by[e.Thread] = time.Duration(e.AtNS-event.AtNS), true
				if e.Thread == event.Thread {
					t.Errorf("an answer by the thread that reads: %+v", e)
				}
			}
		}
	}
	// Of the first ones it is not known yet what answers repeat.
	if len(took) < 20 || len(took) < len(read)-12 || len(by) != 4 {
		t.Fatalf("%d datagrams were read and %d answered, by %d threads", len(read), len(took), len(by))
	}
	// The recording may begin between the four.
	begins := func(first int) bool {
		for i, n := range numbers {
			if d, ok := took[n]; ok && d < handedOnFor(first+i) {
				return false
			}
		}
		return true
	}
	if !begins(0) && !begins(1) && !begins(2) && !begins(3) {
		t.Errorf("answers before their time: %v", took)
	}
}
