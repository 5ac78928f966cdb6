package services

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

// The protocols of a request.
const (
	protocolHTTP      = "http"
	protocolRedis     = "redis"
	protocolMemcached = "memcached"
	protocolPostgres  = "postgres"
	protocolMySQL     = "mysql"
	protocolBeanstalk = "beanstalk"
	protocolMQTT      = "mqtt"
	protocolDNS       = "dns" // over TCP
	protocolDNSUDP    = "dns-udp"
	// protocolTLS is HTTP with a new connection and a whole handshake for each request.
	protocolTLS  = "tls"
	protocolNATS = "nats"
	// protocolKafka produces a message that is acknowledged.
	protocolKafka     = "kafka"
	protocolCassandra = "cassandra" // CQL
	// These have a new connection for each request too.
	protocolSSH   = "ssh"   // up to the server's version
	protocolIMAP  = "imap"  // one command
	protocolClamd = "clamd" // a ping
	// protocolClamdScan is a scan of a file that is clean.
	protocolClamdScan = "clamd-scan"
	// protocolSpamc is a check of a mail, whose first line of the answer comes once it is checked.
	protocolSpamc = "spamc"
)

// protocol is what is said on connections that many requests share.
type protocol struct {
	network string // "": TCP
	// greet begins a connection; nil: nothing is said before the first request.
	greet func(c *bufio.ReadWriter) error
	talk  conversation
}

func protocols() map[string]protocol {
	return map[string]protocol{
		protocolRedis: {talk: talkRedis}, protocolMemcached: {talk: talkMemcached}, protocolBeanstalk: {talk: talkBeanstalk},
		protocolPostgres: {greet: greetPostgres, talk: talkPostgres}, protocolMySQL: {greet: greetMySQL, talk: talkMySQL},
		protocolMQTT: {greet: greetMQTT, talk: talkMQTT}, protocolNATS: {greet: greetNATS, talk: talkNATS},
		protocolCassandra: {greet: greetCassandra, talk: talkCassandra}, protocolKafka: {talk: kafkaProduce(rand.IntN, time.Now)},
		protocolDNS: {talk: dnsOverTCP(drawn)}, protocolDNSUDP: {network: "udp", talk: dnsOverUDP(drawn)},
	}
}

// Request is what one stream sends.
type Request struct {
	Protocol string
	// Addr is host and port. HTTP has it in Text, which is the URL.
	Addr string
	// Text is the URL and, on lines below it, the JSON to post; the path behind TLS, the command's line, the SQL, the message or the name
	// to look up. Each "#" in it becomes a random number below Keys.
	Text string
	Keys int
}

// exchangeOf connects a plan's streams to their protocols.
func exchangeOf(o Order) (loadgen.Exchange, error) {
	if len(o.Requests) != len(o.Plan.Streams) {
		return nil, fmt.Errorf("%d requests for %d streams", len(o.Requests), len(o.Plan.Streams))
	}
	connections := o.Plan.Connections
	if connections == 0 {
		connections = 8
	}
	var send []func(ctx context.Context, text string) error
	for _, r := range o.Requests {
		if r.Protocol == protocolHTTP {
			ask := loadgen.Web(connections, o.Plan.Timeout)
			send = append(send, func(ctx context.Context, text string) error {
				url, body, _ := strings.Cut(text, "\n")
				return ask(ctx, url, body)
			})
			continue
		}
		if r.Protocol == protocolTLS {
			send = append(send, handshakes(r.Addr))
			continue
		}
		if d, ok := dialogs()[r.Protocol]; ok {
			send = append(send, d.hold(r.Addr))
			continue
		}
		of, ok := protocols()[r.Protocol]
		if !ok {
			return nil, fmt.Errorf("protocol %q: not known", r.Protocol)
		}
		send = append(send, newConnections(r, connections, of).exchange)
	}
	return func(ctx context.Context, stream int) error {
		return send[stream](ctx, o.Requests[stream].text())
	}, nil
}

// text is the request with its random key.
func (r Request) text() string {
	if r.Keys == 0 {
		return r.Text
	}
	return strings.ReplaceAll(r.Text, "#", strconv.Itoa(rand.IntN(r.Keys)))
}

// conversation sends a request's text and reads the whole answer.
type conversation func(c *bufio.ReadWriter, text string) error

// connections are a bounded number of connections that requests share, one at a time.
type connections struct {
	to   Request
	of   protocol
	free chan *connection
}

// connection is one of them; without a socket it is still to be made.
type connection struct {
	socket net.Conn
	*bufio.ReadWriter
}

func newConnections(to Request, n int, of protocol) *connections {
	c := &connections{to: to, of: of, free: make(chan *connection, n)}
	for range n {
		c.free <- &connection{}
	}
	return c
}

// patience with one answer.
const patience = 30 * time.Second

// exchange waits for a free connection: its request's clock runs meanwhile.
func (c *connections) exchange(ctx context.Context, text string) error {
	var at *connection
	select {
	case at = <-c.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.free <- at }()
	if at.socket == nil {
		if err := c.connect(ctx, at); err != nil {
			return err
		}
	}
	_ = at.socket.SetDeadline(time.Now().Add(patience)) // fails on a closed socket only
	err := c.of.talk(at.ReadWriter, text)
	if err != nil {
		at.socket.Close()
		at.socket = nil
	}
	return err
}

func (c *connections) connect(ctx context.Context, at *connection) error {
	socket, err := new(net.Dialer).DialContext(ctx, cmp.Or(c.of.network, "tcp"), c.to.Addr)
	if err != nil {
		return err
	}
	at.ReadWriter = bufio.NewReadWriter(bufio.NewReader(socket), bufio.NewWriter(socket))
	if c.of.greet != nil {
		_ = socket.SetDeadline(time.Now().Add(patience)) // fails on a closed socket only
		if err := c.of.greet(at.ReadWriter); err != nil {
			socket.Close()
			return err
		}
	}
	at.socket = socket
	return nil
}

// handshakes gets pages, each over a connection of its own: no session is resumed, so that
// the server signs each time. It trusts any certificate.
func handshakes(addr string) func(ctx context.Context, text string) error {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	return func(ctx context.Context, text string) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		c, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience)) // fails on a closed socket only
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", text, addr); err != nil {
			return err
		}
		answer, err := io.ReadAll(io.LimitReader(c, 1<<20))
		if err == nil && !strings.HasPrefix(string(answer), "HTTP/1.1 200") && !strings.HasPrefix(string(answer), "HTTP/1.0 200") {
			err = fmt.Errorf("tls: %.60q", answer)
		}
		return err
	}
}
