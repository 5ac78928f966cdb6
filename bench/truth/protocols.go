package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
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
		protocolDNS: {talk: talkDNS}, protocolDNSUDP: {network: "udp", talk: talkDatagramDNS},
	}
}

// request is what one stream sends.
type request struct {
	Protocol string
	// Addr is host and port. HTTP has it in Text, which is the URL.
	Addr string
	// Text is the URL and, on lines below it, the JSON to post; the path behind TLS, the command's line, the SQL, the message or the name
	// to look up. Each "#" in it becomes a random number below Keys.
	Text string
	Keys int
}

// exchangeOf connects a plan's streams to their protocols.
func exchangeOf(o order) (loadgen.Exchange, error) {
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
func (r request) text() string {
	if r.Keys == 0 {
		return r.Text
	}
	return strings.ReplaceAll(r.Text, "#", strconv.Itoa(rand.IntN(r.Keys)))
}

// conversation sends a request's text and reads the whole answer.
type conversation func(c *bufio.ReadWriter, text string) error

// connections are a bounded number of connections that requests share, one at a time.
type connections struct {
	to   request
	of   protocol
	free chan *connection
}

// connection is one of them; without a socket it is still to be made.
type connection struct {
	socket net.Conn
	*bufio.ReadWriter
}

func newConnections(to request, n int, of protocol) *connections {
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

// sendLine sends one line and returns the first line of the answer.
func sendLine(c *bufio.ReadWriter, line string) (string, error) {
	if _, err := c.WriteString(line + "\r\n"); err != nil {
		return "", err
	}
	if err := c.Flush(); err != nil {
		return "", err
	}
	return answerLine(c)
}

func answerLine(c *bufio.ReadWriter) (string, error) {
	line, err := c.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

// skip reads a value of n bytes and the end of its line.
func skip(c *bufio.ReadWriter, n string) error {
	length, err := strconv.Atoi(n)
	if err != nil {
		return fmt.Errorf("length %.20q: %w", n, err)
	}
	_, err = c.Discard(length + 2)
	return err
}

// talkRedis sends an inline command (RESP2) and reads a status, a number or a string.
func talkRedis(c *bufio.ReadWriter, text string) error {
	line, err := sendLine(c, text)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(line, "+"), strings.HasPrefix(line, ":"), line == "$-1":
		return nil
	case strings.HasPrefix(line, "$"):
		return skip(c, line[1:])
	}
	return fmt.Errorf("redis: %.100q", line)
}

// talkMemcached sends a get (memcached's protocol.txt).
func talkMemcached(c *bufio.ReadWriter, text string) error {
	line, err := sendLine(c, text)
	for err == nil && strings.HasPrefix(line, "VALUE ") {
		fields := strings.Fields(line)
		if err = skip(c, fields[len(fields)-1]); err == nil {
			line, err = answerLine(c)
		}
	}
	if err == nil && line != "END" && line != "STORED" {
		err = fmt.Errorf("memcached: %.100q", line)
	}
	return err
}

// postgresProtocol is version 3.0 of the frontend/backend protocol.
const postgresProtocol = 3 << 16

// greetPostgres starts a session of the user postgres, whom the server trusts.
func greetPostgres(c *bufio.ReadWriter) error {
	body := binary.BigEndian.AppendUint32(nil, postgresProtocol)
	body = append(body, "user\x00postgres\x00database\x00postgres\x00\x00"...)
	if err := sendPostgres(c, 0, body); err != nil {
		return err
	}
	return untilReady(c)
}

// talkPostgres sends a simple query and reads to the end of its answer.
func talkPostgres(c *bufio.ReadWriter, text string) error {
	if err := sendPostgres(c, 'Q', []byte(text+"\x00")); err != nil {
		return err
	}
	return untilReady(c)
}

func sendPostgres(c *bufio.ReadWriter, kind byte, body []byte) error {
	var message []byte
	if kind != 0 {
		message = append(message, kind)
	}
	message = binary.BigEndian.AppendUint32(message, uint32(len(body)+4))
	if _, err := c.Write(append(message, body...)); err != nil {
		return err
	}
	return c.Flush()
}

// untilReady reads messages up to ReadyForQuery. An ErrorResponse is an error.
func untilReady(c *bufio.ReadWriter) error {
	var failed error
	for {
		var head [5]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return errors.Join(failed, err)
		}
		length := int(binary.BigEndian.Uint32(head[1:])) - 4
		const most = 1 << 20
		if length < 0 || length > most {
			return fmt.Errorf("postgres: a message of %d bytes", length)
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(c, body); err != nil {
			return errors.Join(failed, err)
		}
		switch {
		case head[0] == 'Z':
			return failed
		case head[0] == 'E':
			failed = fmt.Errorf("postgres: %.200q", body)
		case head[0] == 'R' && binary.BigEndian.Uint32(body) != 0:
			return errors.New("postgres asks for a password: use trust in pg_hba.conf")
		}
	}
}
