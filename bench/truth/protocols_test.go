package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

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
		"postgres":        {talkPostgres, "select 1", message('T', "x") + message('D', "y") + message('C', "z") + ready, message('Q', "select 1\x00"), ""},
		"postgres error":  {talkPostgres, "select", message('E', "no column") + ready, message('Q', "select\x00"), "no column"},
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
	if err := greetPostgres(c, "x"); err == nil || !strings.Contains(err.Error(), "trust") {
		t.Error(err)
	}
}

func TestUnknownProtocol(t *testing.T) {
	o := order{Plan: loadgen.Plan{Streams: make([]loadgen.Stream, 1)}, Requests: []request{{Protocol: "gopher"}}}
	if _, err := exchangeOf(o); err == nil || !strings.Contains(err.Error(), "gopher") {
		t.Error(err)
	}
	o.Requests = nil
	if _, err := exchangeOf(o); err == nil {
		t.Error("a stream without a request")
	}
}
