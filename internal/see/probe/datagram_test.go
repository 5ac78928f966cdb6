package probe_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A datagram of these tests: eight bytes that its answer repeats, its number, and what the server does with it.
const (
	askedNumber = 8  // four bytes
	askedDelay  = 12 // milliseconds until it is answered
	askedTimes  = 13 // how many answers it gets
	askedSize   = 14
	wroteAt     = 12 // of an answer: CLOCK_MONOTONIC before it was sent, eight bytes
	wroteSize   = 20
)

func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// answerUDP prints the address of a socket that so many threads read at once, as some servers of DNS do. A thread answers what has no
// delay itself, after a little work, and hands the rest on.
func answerUDP(readers int) {
	c := listenUDP()
	f, err := c.(*net.UDPConn).File()
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	fmt.Println(c.LocalAddr())
	fd := int(f.Fd()) // which makes its reads block
	for range readers {
		go func() {
			runtime.LockOSThread()
			for b := make([]byte, 64); ; {
				n, from, err := unix.Recvfrom(fd, b, 0)
				if err != nil || n < askedSize {
					continue
				}
				answer := func(asked [askedSize]byte) {
					for range asked[askedTimes] {
						a := append(asked[:wroteAt:wroteAt], make([]byte, 8)...)
						binary.LittleEndian.PutUint64(a[wroteAt:], uint64(monotonic()))
						_ = unix.Sendto(fd, a, 0, from)
					}
				}
				asked := [askedSize]byte(b)
				if delay := time.Duration(asked[askedDelay]) * time.Millisecond; delay > 0 {
					time.AfterFunc(delay, func() { answer(asked) })
					continue
				}
				for began := monotonic(); monotonic()-began < 200_000; {
				}
				answer(asked)
			}
		}()
	}
}

// exchange is a datagram as its client saw it, by CLOCK_MONOTONIC: it was sent between asked, and answered between answered; 0: not.
type exchange struct{ asked, answered [2]int64 }

// clientUDP sends datagrams from one port and notes their answers.
type clientUDP struct {
	t         *testing.T
	c         net.Conn
	mu        sync.Mutex
	exchanges []exchange
	came      chan int // the number of each answer
}

func newClientUDP(t *testing.T, at string) *clientUDP {
	c, err := net.Dial("udp", at)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	of := &clientUDP{t: t, c: c, came: make(chan int, 1<<16)}
	go func() {
		for b := make([]byte, 64); ; {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			if n < wroteSize {
				continue
			}
			number := int(binary.LittleEndian.Uint32(b[askedNumber:]))
			of.mu.Lock()
			if e := &of.exchanges[number]; e.answered[1] == 0 {
				e.answered = [2]int64{int64(binary.LittleEndian.Uint64(b[wroteAt:])), monotonic()}
			}
			of.mu.Unlock()
			of.came <- number
		}
	}()
	return of
}

// ask sends a datagram that begins with prefix, and is answered so many times after a delay.
func (of *clientUDP) ask(prefix uint64, delay time.Duration, times byte) (number int) {
	b := make([]byte, askedSize)
	binary.BigEndian.PutUint64(b, prefix)
	of.mu.Lock()
	number = len(of.exchanges)
	of.exchanges = append(of.exchanges, exchange{})
	of.mu.Unlock()
	binary.LittleEndian.PutUint32(b[askedNumber:], uint32(number))
	b[askedDelay], b[askedTimes] = byte(delay.Milliseconds()), times
	before := monotonic()
	if _, err := of.c.Write(b); err != nil && !errors.Is(err, unix.ECONNREFUSED) { // the server ends first
		of.t.Error(err)
	}
	of.mu.Lock()
	of.exchanges[number].asked = [2]int64{before, monotonic()}
	of.mu.Unlock()
	return number
}

// wait waits for n answers, or for so long.
func (of *clientUDP) wait(n int, atMost time.Duration) {
	for end := time.After(atMost); n > 0; n-- {
		select {
		case <-of.came:
		case <-end:
			return
		}
	}
}

// TestDatagramsArePaired checks that each request that a recording tells of was one of a client: it begins when one was sent, and ends
// when that one was answered.
func TestDatagramsArePaired(t *testing.T) {
	require.CheckAll(t, "it has clients of ten kinds, each for seconds; TestRecordingOfDatagrams has one")
	t.Cleanup(debug.FreeOSMemory)                                            // another test measures what Open leaves
	number := func(n int) uint64 { return uint64(n)<<48 | 0x0100_0001_0000 } // as a query of DNS
	const same = 0x1234567890abcdef
	for _, tt := range []struct {
		name             string
		readers, clients int
		limit            float64
		// round is the nth thing that a client does; it ends when the client is done waiting.
		round func(c *clientUDP, n int)
		// counted is the least share of the answered requests that is told; 0: a client cannot tell them apart, so none has to be.
		counted float64
	}{
		{"four threads read one socket", 4, 8, 0.5, func(c *clientUDP, n int) {
			c.ask(number(n), 0, 1)
			c.wait(1, time.Second)
		}, 0.9},
		{"four threads, one client with many at once", 4, 1, 0.5, func(c *clientUDP, n int) {
			for i := range 4 {
				c.ask(number(4*n+i), 0, 1)
			}
			c.wait(4, time.Second)
		}, 0.9},
		{"four threads, the same prefix one after the other", 4, 4, 0.5, func(c *clientUDP, _ int) {
			c.ask(same, 0, 1)
			c.wait(1, time.Second)
		}, 0}, // after one that was read as it arrived, unseen, it is not known which answer is of which
		{"answers overtake", 1, 2, 0, func(c *clientUDP, n int) {
			for i := range 4 {
				c.ask(number(4*n+i), time.Duration(20-5*i)*time.Millisecond, 1)
			}
			c.wait(4, time.Second)
		}, 0.7},
		{"answers overtake, the same prefix", 1, 2, 0, func(c *clientUDP, _ int) {
			c.ask(same, 30*time.Millisecond, 1)
			c.ask(same, 10*time.Millisecond, 1)
			c.wait(2, time.Second)
		}, 0},
		{"two in flight, the same prefix", 1, 2, 0, func(c *clientUDP, n int) {
			if n == 0 {
				c.ask(same, 10*time.Millisecond, 1)
			}
			c.ask(same, 10*time.Millisecond, 1)
			c.wait(1, time.Second)
		}, 0},
		{"retransmissions, both answered", 1, 2, 0, func(c *clientUDP, n int) {
			c.ask(number(n), 30*time.Millisecond, 1)
			c.wait(1, 10*time.Millisecond)
			c.ask(number(n), 30*time.Millisecond, 1)
			c.wait(2, time.Second)
		}, 0},
		{"retransmissions, the second answered, and others", 1, 2, 0, func(c *clientUDP, n int) {
			c.ask(number(2*n), 1, 0)
			c.wait(1, 5*time.Millisecond)
			c.ask(number(2*n), 10*time.Millisecond, 1)
			c.ask(number(2*n+1), 20*time.Millisecond, 1)
			c.wait(2, time.Second)
		}, 0.4},
		{"more at once than are followed", 4, 2, 0, func(c *clientUDP, n int) {
			for i := range 120 {
				c.ask(number(120*n+i), time.Duration(10+i%7)*time.Millisecond, byte(min(1, i%9)))
			}
			c.wait(106, 300*time.Millisecond)
		}, 0.1},
		{"some are not answered", 4, 2, 0, func(c *clientUDP, n int) {
			c.ask(number(2*n), 1, 0)
			c.ask(number(2*n+1), 5*time.Millisecond, 1)
			c.wait(1, time.Second)
		}, 0.9},
		{"answered twice, while others wait", 1, 2, 0, func(c *clientUDP, n int) {
			c.ask(number(2*n), 5*time.Millisecond, 2)
			c.ask(number(2*n+1), 20*time.Millisecond, 1)
			c.wait(3, time.Second)
		}, 0.7},
		{"not answered, and the same prefix after a second", 1, 4, 0, func(c *clientUDP, n int) {
			if n%40 == 5 {
				c.ask(same, 1, 0)
				c.wait(1, 1100*time.Millisecond)
			}
			c.ask(same, time.Millisecond, 1)
			c.wait(1, time.Second)
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, tr, path, at := udpServer(t, "answerudp", strconv.Itoa(tt.readers))
			if tt.limit > 0 {
				tr.Limit(path, tt.limit)
			}
			stop := make(chan struct{})
			var clients []*clientUDP
			var working sync.WaitGroup
			for range tt.clients {
				c := newClientUDP(t, at)
				clients = append(clients, c)
				working.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						tt.round(c, n)
					}
				})
			}
			r := record(t, p, tr, container(t, tr, path), 3*time.Second)
			close(stop)
			working.Wait()
			follow(t, r)
			var all []exchange
			for _, c := range clients {
				c.mu.Lock()
				all = append(all, c.exchanges...)
				c.mu.Unlock()
			}
			paired(t, &r, all, tt.counted)
		})
	}
}

// arrivesWithin is how long after its client's call a datagram may arrive, in nanoseconds.
const arrivesWithin = 300_000

// paired compares the requests of a recording with what the clients saw.
func paired(t *testing.T, r *recording.Recording, all []exchange, counted float64) {
	t.Helper()
	start := int64(r.Header.StartNS)
	begins, seen, told, wrong := map[uint32]int64{}, 0, 0, 0
	for _, e := range all {
		if e.asked[0] > start && e.answered[0] > 0 && e.answered[1] < start+r.Footer.EndNS {
			seen++
		}
	}
	for _, e := range r.Events {
		switch e.Kind {
		case recording.Receive:
			begins[e.Socket] = start + e.AtNS - int64(e.Count)
		case recording.Send:
			begin, ok := begins[e.Socket]
			if !ok {
				continue // of one that was read before the recording began
			}
			told++
			matches, end := false, start+e.AtNS
			for _, x := range all { // clients may send at the same time, and one arrive in the interrupt of another
				matches = matches || x.asked[0] <= begin && begin <= x.asked[1]+arrivesWithin &&
					x.answered[0] <= end && end <= x.answered[1]
			}
			if !matches {
				if wrong++; wrong <= 3 {
					t.Logf("no client saw a request from %v for %v", time.Duration(begin-start), time.Duration(end-begin))
					for _, x := range all {
						if x.asked[0] <= begin && begin <= x.answered[1] {
							t.Logf("one was sent %v after that, and answered %v after the end",
								time.Duration(x.asked[0]-begin), time.Duration(x.answered[0]-end))
						}
					}
				}
			}
		}
	}
	t.Logf("%d requests of %d that the clients saw answered, %d wrong", told, seen, wrong)
	// One that is read as it arrives may be unseen, and its answer then counts for the same sent again.
	if wrong*100 > seen || seen < 20 || float64(told) < counted*float64(seen) {
		t.Errorf("%d requests of %d that the clients saw answered, %d wrong; want %.0f%% of them", told, seen, wrong, 100*counted)
	}
}
