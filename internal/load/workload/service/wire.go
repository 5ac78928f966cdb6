package service

import "encoding/binary"

// The wire is one message per request and one per answer, over a sequenced-packet
// socket, which keeps messages whole (unix(7), SOCK_SEQPACKET). Many requests
// share a connection, as in HTTP/2.

// Bytes of a message.
const (
	RequestBytes = 16
	AnswerBytes  = 16
)

// Request asks for one piece of work.
type Request struct {
	Number uint64 // comes back in the answer; decides the work
	Try    uint8  // of the same number, from 0 on; comes back, changes nothing
	Class  uint8  // index into Spec.Classes
	// Client tells clients apart that give the same numbers one after the other; comes back.
	Client uint32
}

// Status of an answer.
type Status uint8

// The statuses.
const (
	Served  Status = 0
	Refused Status = 1 // the queue was full
	Unknown Status = 2 // no such class
)

// Answer ends a request.
type Answer struct {
	Number uint64
	Try    uint8
	Status Status
	Client uint32
}

// Encode writes the message.
func (r Request) Encode(to *[RequestBytes]byte) {
	binary.LittleEndian.PutUint64(to[0:], r.Number)
	binary.LittleEndian.PutUint64(to[8:], uint64(r.Try)|uint64(r.Class)<<8|uint64(r.Client)<<32)
}

// decodeRequest reads what Encode wrote; any 16 bytes are a request.
func decodeRequest(from *[RequestBytes]byte) Request {
	return Request{Number: binary.LittleEndian.Uint64(from[0:]), Try: from[8], Class: from[9],
		Client: binary.LittleEndian.Uint32(from[12:])}
}

// Encode writes the message.
func (a Answer) Encode(to *[AnswerBytes]byte) {
	binary.LittleEndian.PutUint64(to[0:], a.Number)
	binary.LittleEndian.PutUint64(to[8:], uint64(a.Try)|uint64(a.Status)<<8|uint64(a.Client)<<32)
}

// DecodeAnswer reads what Encode wrote; any 16 bytes are an answer.
func DecodeAnswer(from *[AnswerBytes]byte) Answer {
	return Answer{Number: binary.LittleEndian.Uint64(from[0:]), Try: from[8], Status: Status(from[9]),
		Client: binary.LittleEndian.Uint32(from[12:])}
}
