// Package answers is what the agent answers as JSON on loopback addresses or its socket alone, beside package listing (GET /containers) and
// policy.Document (GET /policy), and the file by which the agent is told of pods. Whoever reads or writes these imports this package, and
// with it no part of the agent.
package answers

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/listing"
)

// Version is that of all documents here.
const Version = 1

// MostAtOnce bounds the answers that the agent gives at once, and apart from them the recordings that it sends at once:
// beyond, a client gets 503 and Retry-After. Whoever asks for others asks for no more.
const MostAtOnce = 4

// The schemas.
const (
	StatusSchema     = "agent_status"
	RecordingsSchema = "agent_recordings"
)

// Containers answers GET /containers: `ls -o json`, by path.
type Containers struct {
	Schema  string `json:"schema"`
	Version int    `json:"version"`
	listing.Document
}

// Status answers GET /status.
type Status struct {
	Schema  string             `json:"schema"`
	Version int                `json:"version"`
	Agent   policy.ReportAgent `json:"agent"`
	Mode    policy.Mode        `json:"mode"`
	// NotHealthy and NotReady are what /healthz and /readyz complain of; null: nothing.
	NotHealthy *string `json:"not_healthy"`
	NotReady   *string `json:"not_ready"`
	// NotRecorded is why the agent records nothing; null: it records.
	NotRecorded *string   `json:"not_recorded"`
	InForce     []InForce `json:"in_force"` // oldest first
}

// InForce is one transaction in force.
type InForce struct {
	ID      string    `json:"id"`
	Cgroup  string    `json:"cgroup"` // escaped as in `ls -o json`
	Name    string    `json:"name"`
	Remedy  string    `json:"remedy"`
	Since   time.Time `json:"since"`
	By      string    `json:"by"`
	Verdict string    `json:"verdict"`
	OnTrial bool      `json:"on_trial"`
}

// Recordings answers GET /recordings on the socket: what the flight recorder keeps, oldest first.
type Recordings struct {
	Schema     string      `json:"schema"`
	Version    int         `json:"version"`
	Recordings []Recording `json:"recordings"`
}

// Recording is one of them. GET /recordings/FILE is its file.
type Recording struct {
	File   string    `json:"file"`
	At     time.Time `json:"at"`
	Bytes  int64     `json:"bytes"`
	Cgroup string    `json:"cgroup"`
	Name   string    `json:"name"`
	// Namespace, Pod and Container are Kubernetes' names; null: none, or not known.
	Namespace *string `json:"namespace"`
	Pod       *string `json:"pod"`
	Container *string `json:"container"`
}
