package answers

import "time"

// The schemas of what is told of the probes of pods.
const (
	PodsSchema   = "node_pods"
	ProbesSchema = "agent_probes"
)

// Bounds of the file of the node's pods: what is beyond is left out, and counted. A node has 110 pods by default.
const (
	MaxPodContainers = 512
	MaxPodsBytes     = 2 << 20
	// MaxRestarts of a container are kept, of the last day.
	MaxRestarts = 32
)

// Pods is the file that tells the agent which probes the kubelet of its node makes. The agent itself cannot ask the
// Kubernetes API.
type Pods struct {
	Schema     string         `json:"schema"`
	Version    int            `json:"version"`
	Containers []PodContainer `json:"containers"`
	// LeftOut are containers beyond MaxPodContainers.
	LeftOut int `json:"left_out"`
}

// PodContainer is a container that has probes.
type PodContainer struct {
	// ID is the runtime's, without its scheme, while the container runs and is probed; "" while it waits or starts.
	ID        string     `json:"id"`
	Namespace string     `json:"namespace"`
	Pod       string     `json:"pod"`
	UID       string     `json:"uid"`
	Container string     `json:"container"`
	Probes    []PodProbe `json:"probes"`
	// Restarts that are known, oldest first: the API server keeps the last one only.
	Restarts []Restart `json:"restarts"`
}

// PodProbe is a probe that the kubelet makes, with the words and units of a pod's spec.
type PodProbe struct {
	Probe            string `json:"probe"`   // liveness or readiness
	Handler          string `json:"handler"` // httpGet, grpc or exec
	TimeoutSeconds   int    `json:"timeout_seconds"`
	PeriodSeconds    int    `json:"period_seconds"`
	FailureThreshold int    `json:"failure_threshold"`
	// From is when the first one of the container that runs is made; left out while it waits or starts.
	From time.Time `json:"from,omitzero"`
}

// Restart is how a container ended before it was started again.
type Restart struct {
	At       time.Time `json:"at"`
	ExitCode int       `json:"exit_code"`
	Reason   string    `json:"reason"`
}

// Probes answers GET /probes: the probes of pods that miss their timeout since a quota stops the container.
type Probes struct {
	Schema   string         `json:"schema"`
	Version  int            `json:"version"`
	Findings []ProbeFinding `json:"findings"`
}

// ProbeFinding is one of them.
type ProbeFinding struct {
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	UID       string   `json:"uid"`
	Container string   `json:"container"`
	Probe     PodProbe `json:"probe"`
	// ObservedSeconds is for how long it was watched.
	ObservedSeconds float64 `json:"observed_seconds"`
	// Answers are figures by how much running time an answer takes, the least first.
	Answers []ProbeAnswer `json:"answers"`
	// LowestRunningSeconds is for how long the container could run at least within a timeout; the stops may leave it
	// more, up to the second figure.
	LowestRunningSeconds [2]float64 `json:"lowest_running_seconds"`
	// WorstHour is the one of the last day in which a quota stopped the container most; null: none did.
	WorstHour *ProbeHour `json:"worst_hour"`
	// Says all that in words.
	Says string `json:"says"`
}

// ProbeAnswer is how often a probe would fail whose answer takes that much running time. Each figure is the least and
// the most.
type ProbeAnswer struct {
	TakesSeconds   float64    `json:"takes_seconds"`
	MissesPerDay   [2]float64 `json:"misses_per_day"`
	FailuresPerDay [2]float64 `json:"failures_per_day"`
}

// ProbeHour is an hour of the clock.
type ProbeHour struct {
	From           time.Time `json:"from"`
	StoppedSeconds float64   `json:"stopped_seconds"`
	// Restarts in it, without those for want of memory.
	Restarts []Restart `json:"restarts"`
}
