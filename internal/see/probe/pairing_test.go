package probe

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// dnsAnswer is the head of an answer to a query of DNS with this head: the number is repeated, flags and counts are not.
func dnsAnswer(query uint64) uint64 { return query&^(0xffff<<16) | 0x84<<16 | 1<<56 }

// TestDatagramsOfAFullClient pairs the queries of clients that have more of them under way than are followed, some of which are never
// answered: each pair is of one query, and the number goes on being what tells.
func TestDatagramsOfAFullClient(t *testing.T) {
	for _, calm := range []int{-1, 20} { // rounds before it
		t.Run(fmt.Sprint(calm), func(t *testing.T) { pairFullClients(t, calm) })
	}
}

func pairFullClients(t *testing.T, calm int) {
	var d datagrams
	chance := rand.New(rand.NewPCG(1, 2))
	const clients, socket = 8, 7
	next, told, answered := uint64(0), 0, 0
	type query struct{ head, client, at uint64 }
	queryOf := map[uint32]query{}
	numbers := [clients]uint64{}
	for round := range 400 {
		var wave []query
		many := 1
		if round > calm {
			many = clients * (1 + chance.IntN(200)) // which the server has in its queue
		}
		for range many {
			next += 1000
			client := chance.Uint64N(clients)
			numbers[client]++
			n := numbers[client] & 0xffff
			q := query{n>>8 | n&0xff<<8 | 0x01<<16 | 0x01<<40, client, next}
			wave = append(wave, q)
			r := bpfRecordDatagram{Client: client + 1, Head: q.head, Since: next - 10}
			r.R.B, r.R.A, r.R.At = socket, 1, next
			if number := d.read(&r); number != 0 {
				queryOf[number] = q
			}
		}
		for _, q := range wave {
			if round > calm && chance.IntN(20) == 0 {
				continue // lost
			}
			next += 1000
			r := bpfRecordDatagram{Client: q.client + 1, Head: dnsAnswer(q.head)}
			r.R.B, r.R.A, r.R.At = socket, 1, next
			answered++
			if number := d.sent(&r); number != 0 {
				if told++; queryOf[number] != q {
					t.Fatalf("answer to %+v is told of %+v, after %d (repeated %x)", q, queryOf[number], told, d.sockets[socket].repeated())
				}
			}
		}
	}
	if repeated := d.sockets[socket].repeated(); repeated&0xffff != 0xffff || told*4 < answered {
		t.Errorf("%d of %d told, %x repeated", told, answered, repeated)
	}
}
