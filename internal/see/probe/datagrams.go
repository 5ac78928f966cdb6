package probe

import (
	"math"
	"slices"
	"time"
)

// datagrams finds which request each answer of a UDP server answers. A datagram to a server's socket is a request, and its answer is one to
// that client from that socket, whichever thread sends it. A client that waits for several answers tells them apart by what the server
// repeats of its request, such as the number of a query of DNS. Which of the first bytes these are is learned for each socket.
//
// An answer is paired if it repeats these bytes of one request of its client and of no other. A client that sends the same bytes again, or
// has them in another request, may have had one under way before the recording, which answers would be one off for ever: then which one an
// answer is of is not known, and none of them gets one. The zero value is ready.
type datagrams struct {
	sockets map[uint64]*datagramSocket
	known   int // datagrams of all sockets
	number  uint32
}

// Bounds of what is followed.
const (
	maxDatagrams   = 1 << 16 // not answered, of all clients; beyond it all are forgotten
	maxOfOneClient = 64      // the oldest goes
	maxStrays      = 4
	// firstDatagram is the number of the first one; connections have those below.
	firstDatagram = 1 << 31
)

// A byte counts as repeated after echoSure answers that did more often than not: by echoMissed to one, because many protocols have other
// bytes that are equal by chance, such as those of counts. An earlier answer may be of what was read before the recording, and is not
// told of.
const (
	echoSure   = 4
	echoMost   = 64
	echoMissed = 8
)

// askedFor is for how long a client may wait for an answer before it asks the same again. What it asked before is then taken for lost.
const askedFor = uint64(time.Second)

type datagramSocket struct {
	echoes  [8]uint8 // how surely answers repeat each byte
	seen    int      // answers from which echoes are known
	alike   int      // the most bytes that a request and an answer had in common
	clients map[uint64]*datagramClient
}

type datagramClient struct {
	asked []asked
	// strays are the last answers that were of no request. Several threads that read one socket may tell of a datagram after its answer.
	strays []stray
	// unknown is when a datagram was read of which nothing is known, and which may be of this client, or when one that waited was
	// forgotten; 0: none was since it last paused. Until then an answer is paired only where no other of its datagrams has the same
	// bytes.
	unknown, last uint64
}

type stray struct{ head, at uint64 }

// asked is a datagram that was read.
type asked struct {
	head, at uint64
	number   uint32 // 0: it is not told of, because which answer is its own is not known
	answered bool   // kept to know a further answer to it
}

func (d *datagrams) forget() { d.sockets, d.known = nil, 0 }

// read takes a datagram that was read. It returns its number, 0 if it is not told of.
func (d *datagrams) read(r *bpfRecordDatagram) uint32 {
	if r.Client == 0 { // its answer may be taken for that of another one
		if s := d.sockets[r.R.B]; s != nil {
			for _, c := range s.clients {
				c.unknown = r.R.At
				for i := range c.asked {
					c.asked[i].number = 0 // it may be the same, sent again
				}
			}
		}
		return 0
	}
	if d.known == maxDatagrams {
		d.forget()
	}
	if d.sockets == nil {
		d.sockets = map[uint64]*datagramSocket{}
	}
	s := d.sockets[r.R.B]
	if s == nil {
		s = &datagramSocket{clients: map[uint64]*datagramClient{}}
		d.sockets[r.R.B] = s
	}
	next := asked{head: r.Head, at: r.R.At}
	if r.R.A != 0 && r.Since != 0 && d.number < firstDatagram-1 {
		d.number++
		next.number = firstDatagram + d.number
	}
	told := next.number
	c := s.clients[r.Client]
	if c == nil {
		c = &datagramClient{}
		s.clients[r.Client] = c
	}
	bytes, all := s.repeated(), c.asked
	was := len(all)
	if next.at-min(next.at, max(c.last, c.unknown)) > askedFor {
		c.unknown = 0
	}
	c.last = next.at
	if i := slices.IndexFunc(c.strays, func(a stray) bool { return a.at > r.Since && (a.head^next.head)&bytes == 0 }); i >= 0 {
		c.strays = slices.Delete(c.strays, i, i+1)
		next.answered, told = true, 0
	}
	same := bytes
	if same == 0 {
		same = math.MaxUint64 // the server repeats nothing: an answer is told by who waits for one
	}
	if slices.ContainsFunc(all, func(a asked) bool { return (a.head^next.head)&same == 0 }) {
		next.number, told = 0, 0 // which of them was under way when the recording began is not known
	}
	last := uint64(0)
	for _, a := range all {
		if !a.answered && (a.head^next.head)&bytes == 0 {
			last = max(last, a.at)
		}
	}
	if last > 0 && next.at-min(next.at, last) > askedFor {
		all = slices.DeleteFunc(all, func(a asked) bool { return !a.answered && (a.head^next.head)&bytes == 0 })
		next.number = 0 // the answer that is late may still come
	}
	if len(all) == maxOfOneClient {
		i := slices.IndexFunc(all, func(a asked) bool { return a.answered })
		if i < 0 { // its answer may still come
			i, c.unknown = 0, next.at
		}
		all = slices.Delete(all, i, i+1)
	}
	all = append(all, next)
	d.known += len(all) - was
	c.asked = all
	return told
}

// sent takes a datagram that was sent. It returns the number of the request that it answers, 0 if that is not known.
func (d *datagrams) sent(r *bpfRecordDatagram) uint32 {
	s := d.sockets[r.R.B]
	if s == nil {
		return 0
	}
	c := s.clients[r.Client]
	if c == nil {
		return 0
	}
	all, bytes, sure := c.asked, s.repeated(), s.seen >= echoSure
	var matches []*asked
	var like *asked // the one request that is most like the answer
	most, further := -1, -1
	for i := range all {
		a := &all[i]
		n := alike(a.head, r.Head)
		if a.answered {
			further = max(further, n)
			continue
		}
		switch {
		case n > most:
			most, like = n, a
		case n == most:
			like = nil
		}
		if (a.head^r.Head)&bytes == 0 {
			matches = append(matches, a)
		}
	}
	// Where the request may not be among these, the one that is most like the answer is as much alike as requests and answers are.
	if like != nil && further <= most && (c.unknown == 0 || most >= s.alike) {
		s.alike = max(s.alike, most)
		s.learn(like.head, r.Head)
	}
	if len(matches) == 0 {
		if len(c.strays) == maxStrays {
			c.strays = slices.Delete(c.strays, 0, 1)
		}
		c.strays = append(c.strays, stray{r.Head, r.R.At})
		return 0
	}
	number := matches[0].number
	if len(matches) > 1 {
		number = 0
		for _, a := range matches {
			a.number = 0
		}
	}
	if c.unknown > 0 {
		for i := range all {
			if a := &all[i]; a != matches[0] && (a.head^matches[0].head)&bytes == 0 {
				number = 0
			}
		}
	}
	matches[0].answered = true
	if !sure {
		return 0
	}
	return number
}

// alike is how many bytes of two heads are the same.
func alike(a, b uint64) (n int) {
	for i := range 8 {
		if (a^b)>>(8*i)&0xff == 0 {
			n++
		}
	}
	return n
}

func (s *datagramSocket) learn(request, answer uint64) {
	for i := range s.echoes {
		switch was := s.echoes[i]; {
		case (request^answer)>>(8*i)&0xff == 0:
			s.echoes[i] = min(was+1, echoMost)
		default:
			s.echoes[i] = was - min(was, echoMissed)
		}
	}
	s.seen++
}

// repeated has all bits of each byte that answers repeat.
func (s *datagramSocket) repeated() (bytes uint64) {
	for i, n := range s.echoes {
		if n >= echoSure {
			bytes |= 0xff << (8 * i)
		}
	}
	return bytes
}
