package services

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

// said is a connection on which the server has said everything already.
func said(answer string) (*bufio.ReadWriter, *bytes.Buffer) {
	sent := &bytes.Buffer{}
	return bufio.NewReadWriter(bufio.NewReader(strings.NewReader(answer)), bufio.NewWriter(sent)), sent
}

func message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

const (
	dnsAsked  = "\x00\x15\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x01b\x00\x00\x01\x00\x01"
	mysqlEnds = "\x05\x00\x00\x03\xfe\x00\x00\x02\x00"
)

func dnsAnswer(code, answers byte) string {
	return "\x00\x0e\x00\x07\x81" + string([]byte{0x80 | code}) + "\x00\x01\x00" + string([]byte{answers}) + "\x00\x00\x00\x00xx"
}

func seven() uint16 { return 7 }

func cqlAnswer(operation byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0x84, 0, 0, 0, operation}, uint32(len(body)))) + body
}

func TestConversations(t *testing.T) {
	ready := message('Z', "I")
	for name, test := range map[string]struct {
		talk                conversation
		text, answer, sends string
		fails               string
	}{
		"redis string":    {talkRedis, "GET a", "$3\r\nabc\r\n", "GET a\r\n", ""},
		"redis none":      {talkRedis, "GET a", "$-1\r\n", "GET a\r\n", ""},
		"redis status":    {talkRedis, "BGSAVE", "+OK\r\n", "BGSAVE\r\n", ""},
		"redis error":     {talkRedis, "BGSAVE", "-ERR busy\r\n", "BGSAVE\r\n", "ERR busy"},
		"redis cut off":   {talkRedis, "GET a", "$30\r\nabc", "GET a\r\n", "EOF"},
		"memcached":       {talkMemcached, "get a", "VALUE a 0 3\r\nabc\r\nEND\r\n", "get a\r\n", ""},
		"memcached none":  {talkMemcached, "get a", "END\r\n", "get a\r\n", ""},
		"memcached error": {talkMemcached, "get", "ERROR\r\n", "get\r\n", "ERROR"},
		"beanstalk":       {talkBeanstalk, "job", "INSERTED 7\r\nDELETED\r\n", "put 0 0 60 3\r\njob\r\ndelete 7\r\n", ""},
		"beanstalk full":  {talkBeanstalk, "job", "OUT_OF_MEMORY\r\n", "put 0 0 60 3\r\njob\r\n", "OUT_OF_MEMORY"},
		"mqtt":            {talkMQTT, "hi", "\x40\x02\x00\x01", "\x32\x0b\x00\x05truth\x00\x01hi", ""},
		"mqtt other":      {talkMQTT, "hi", "\x30\x02\x00\x01", "\x32\x0b\x00\x05truth\x00\x01hi", "not acknowledged"},
		"dns":             {dnsOverTCP(seven), "a.b", dnsAnswer(0, 1), dnsAsked, ""},
		"dns unknown":     {dnsOverTCP(seven), "a.b", dnsAnswer(3, 0), dnsAsked, "code 3"},
		"dns cut off":     {dnsOverTCP(seven), "a.b", dnsAnswer(0, 1)[:8], dnsAsked, "EOF"},
		"dns short":       {dnsOverTCP(seven), "a.b", "\x00\x02\x00\x07", dnsAsked, "2 bytes"},
		"dns other": {dnsOverTCP(seven), "a.b", strings.Replace(dnsAnswer(0, 1), "\x07", "\x08", 1), dnsAsked,
			"question 8, not to 7"},
		"dns udp":         {dnsOverUDP(seven), "a.b", dnsAnswer(0, 1)[2:], dnsAsked[2:], ""},
		"dns udp unknown": {dnsOverUDP(seven), "a.b", dnsAnswer(3, 0)[2:], dnsAsked[2:], "code 3"},
		"dns udp short":   {dnsOverUDP(seven), "a.b", "\x00\x07", dnsAsked[2:], "2 bytes"},
		"mysql": {talkMySQL, "select", "\x01\x00\x00\x01\x01" + "\x02\x00\x00\x02xx" + mysqlEnds +
			"\x02\x00\x00\x04\x01a" + mysqlEnds, "\x07\x00\x00\x00\x03select", ""},
		"mysql no rows": {talkMySQL, "insert", "\x01\x00\x00\x01\x00", "\x07\x00\x00\x00\x03insert", ""},
		"mysql error":   {talkMySQL, "select", "\x0a\x00\x00\x01\xffno column", "\x07\x00\x00\x00\x03select", "no column"},
		"postgres": {talkPostgres, "select 1", message('T', "x") + message('D', "y") + message('C', "z") + ready,
			message('Q', "select 1\x00"), ""},
		"postgres error": {talkPostgres, "select", message('E', "no column") + ready, message('Q', "select\x00"), "no column"},
		"cassandra": {talkCassandra, "select", cqlAnswer(cqlResult, "rows"), "\x04\x00\x00\x00\x07\x00\x00\x00\x0d" +
			"\x00\x00\x00\x06select\x00\x01\x00", ""},
		"cassandra error": {talkCassandra, "", cqlAnswer(cqlError, "\x00\x00\x22\x00no column"), "\x04\x00\x00\x00\x07\x00\x00\x00\x07" +
			"\x00\x00\x00\x00\x00\x01\x00", "no column"},
		"cassandra long": {talkCassandra, "", "\x84\x00\x00\x00\x08\xff\xff\xff\xff", "\x04\x00\x00\x00\x07\x00\x00\x00\x07" +
			"\x00\x00\x00\x00\x00\x01\x00", "4294967295 bytes"},
		"nats":         {talkNATS, "hi", "PING\r\nPONG\r\n", "PUB truth 2\r\nhi\r\nPING\r\nPONG\r\n", ""},
		"nats error":   {talkNATS, "hi", "-ERR 'Unknown'\r\n", "PUB truth 2\r\nhi\r\nPING\r\n", "Unknown"},
		"ssh":          {dialogs()[protocolSSH].talk, "", "SSH-2.0-x\r\n", "", ""},
		"ssh busy":     {dialogs()[protocolSSH].talk, "", "Exceeded MaxStartups\r\n", "", "MaxStartups"},
		"imap":         {dialogs()[protocolIMAP].talk, "a LOGIN u p", "* OK ready\r\n* CAPABILITY\r\na OK in\r\n", "a LOGIN u p\n", ""},
		"imap refused": {dialogs()[protocolIMAP].talk, "a LOGIN u p", "* OK ready\r\na NO failed\r\n", "a LOGIN u p\n", "a NO"},
		"clamd":        {dialogs()[protocolClamdScan].talk, "nSCAN /a", "/a: OK\n", "nSCAN /a\n", ""},
		"clamd found":  {dialogs()[protocolClamdScan].talk, "nSCAN /a", "/a: Truth.1 FOUND\n", "nSCAN /a\n", "FOUND"},
		"spamc":        {dialogs()[protocolSpamc].talk, "CHECK", "SPAMD/1.1 0 EX_OK\r\nSpam: False\r\n\r\n", "CHECK\n", ""},
		"spamc bad":    {dialogs()[protocolSpamc].talk, "CHECK", "SPAMD/1.0 76 Bad header line\r\n", "CHECK\n", "Bad header"},
	} {
		c, sent := said(test.answer)
		err := test.talk(c, test.text)
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) || sent.String() != test.sends {
			t.Errorf("%s: %v, sent %q", name, err, sent)
		}
	}
}

func TestPassword(t *testing.T) {
	c, _ := said(message('R', "\x00\x00\x00\x05"))
	if err := greetPostgres(c); err == nil || !strings.Contains(err.Error(), "trust") {
		t.Error(err)
	}
}

func TestGreetings(t *testing.T) {
	hello := "\x02\x00\x00\x00\x0ax"
	for name, test := range map[string]struct {
		greet         func(*bufio.ReadWriter) error
		answer, fails string
	}{
		"mqtt":           {greetMQTT, "\x20\x02\x00\x00", ""},
		"mqtt refused":   {greetMQTT, "\x20\x02\x00\x05", "refused"},
		"nats":           {greetNATS, "INFO {}\r\n", ""},
		"nats other":     {greetNATS, "-ERR\r\n", "-ERR"},
		"mysql":          {greetMySQL, hello + "\x01\x00\x00\x02\x00", ""},
		"mysql password": {greetMySQL, hello + "\x06\x00\x00\x02\xfenativ", "skip-grant-tables"},
	} {
		c, _ := said(test.answer)
		if err := test.greet(c); (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownProtocol(t *testing.T) {
	o := Order{Plan: loadgen.Plan{Streams: make([]loadgen.Stream, 1)}, Requests: []Request{{Protocol: "gopher"}}}
	if _, err := exchangeOf(o); err == nil || !strings.Contains(err.Error(), "gopher") {
		t.Error(err)
	}
	o.Requests = nil
	if _, err := exchangeOf(o); err == nil {
		t.Error("a Stream without a request")
	}
}

func TestPosts(t *testing.T) {
	heard := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		heard <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
	}))
	defer server.Close()
	for text, want := range map[string]string{
		"/page":                     "GET /page  ",
		"/range\n" + `{"key":"a#"}`: `POST /range application/json {"key":"a0"}`,
	} {
		o := Order{Plan: loadgen.Plan{Streams: make([]loadgen.Stream, 1)},
			Requests: []Request{{Protocol: protocolHTTP, Text: server.URL + text, Keys: 1}}}
		send, err := exchangeOf(o)
		if err == nil {
			err = send(t.Context(), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := <-heard; got != want {
			t.Errorf("%q: the server heard %q", text, got)
		}
	}
}

// A server of datagrams answers no connection.
func TestDatagrams(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		asked := make([]byte, 512)
		for {
			_, from, err := server.ReadFrom(asked)
			if err != nil {
				return // closed
			}
			_, _ = server.WriteTo([]byte(string(asked[:2])+dnsAnswer(0, 1)[4:]), from)
		}
	}()
	o := Order{Plan: loadgen.Plan{Streams: make([]loadgen.Stream, 1)},
		Requests: []Request{{Protocol: protocolDNSUDP, Addr: server.LocalAddr().String(), Text: "a.b"}}}
	send, err := exchangeOf(o)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // more than there are sockets
		if err := send(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// A request to Kafka has lengths that fit, and a sum that the broker finds right.
func TestKafka(t *testing.T) {
	answer := func(code string) string {
		body := "\x00\x00\x00\x00" + "\x00\x00\x00\x01" + "\x00\x06orders" + "\x00\x00\x00\x01" + "\x00\x00\x00\x03" + code +
			strings.Repeat("\x00", 8+8+4)
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
	}
	produce := kafkaProduce(func(n int) int { return n - 1 }, func() time.Time { return time.UnixMilli(1) })
	c, sent := said(answer("\x00\x00"))
	if err := produce(c, "orders 4 hello"); err != nil {
		t.Fatal(err)
	}
	request := sent.Bytes()
	be := binary.BigEndian
	if int(be.Uint32(request)) != len(request)-4 {
		t.Errorf("%d bytes are said of %d", be.Uint32(request), len(request)-4)
	}
	const head = 4 + 2 + 2 + 4 + 2 + len("study") + 2 + 2 + 4 + 4 + 2 + len("orders") + 4
	if partition := be.Uint32(request[head:]); partition != 3 {
		t.Errorf("partition %d", partition)
	}
	batch := request[head+8:]
	if int(be.Uint32(request[head+4:])) != len(batch) || int(be.Uint32(batch[8:])) != len(batch)-12 || batch[16] != kafkaBatchVersion {
		t.Errorf("a batch of %d bytes: %x", len(batch), batch)
	}
	if sum := crc32.Checksum(batch[21:], castagnoli); sum != be.Uint32(batch[17:]) {
		t.Errorf("sum %x, said is %x", sum, be.Uint32(batch[17:]))
	}
	if !bytes.HasSuffix(batch, []byte("\x0ahello\x00")) {
		t.Errorf("%q", batch)
	}
	for text, want := range map[string]string{"orders 4 hello": "error 3", "orders x hello": "partitions", "orders": "a topic"} {
		c, _ := said(answer("\x00\x03"))
		if err := produce(c, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	c, _ = said("\x00\x00\x00\x02xx")
	if err := produce(c, "orders 4 hello"); err == nil || !strings.Contains(err.Error(), "2 bytes") {
		t.Errorf("of a short answer: %v", err)
	}
}
