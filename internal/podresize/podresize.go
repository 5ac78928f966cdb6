package podresize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Setting names the limit in a journal.
const Setting = "limits.cpu"

// CPU is what a pod's spec and status say of the CPU of one of its containers.
type CPU struct {
	// UID is the pod's, ID the container's, as the runtime names it.
	UID string `json:"uid"`
	ID  string `json:"id"`
	// Limit is the spec's, Actual the one that the kubelet has set; 0: there is none.
	Limit  Milli `json:"limit"`
	Actual Milli `json:"actual"`
	// Guaranteed: the pod is of this QoS class, so that its request goes with the limit.
	Guaranteed bool `json:"guaranteed"`
	// PodLevel: the pod has CPU resources of its own. Restarts: the container's resizePolicy has it restarted.
	PodLevel bool `json:"pod_level"`
	Restarts bool `json:"restarts"`
	// Pending is the reason why the kubelet has not accepted a resize, PendingDeferred or PendingInfeasible; "": it
	// has.
	Pending string `json:"pending"`
	// Running: an accepted resize is being done.
	Running bool `json:"running"`
	// Ready: a probe of the container says so. One without a readiness or startup probe never is: nothing tells.
	Ready bool `json:"ready"`
	// Autoscaler names the VerticalPodAutoscaler that resizes the container; "": none does, or Untold says why it is not known.
	Autoscaler string `json:"autoscaler"`
	Untold     string `json:"untold"`
	// Message is the kubelet's about what is pending or running.
	Message string `json:"message"`
}

// The kubelet's reasons of PodResizePending.
const (
	PendingDeferred   = "Deferred"
	PendingInfeasible = "Infeasible"
)

// Milli is thousandths of a CPU, as exact as Kubernetes is.
type Milli int64

// MilliOf rounds CPUs up.
func MilliOf(cpus float64) Milli {
	const noise = 1e-6 // of a product of decimal numbers
	m := Milli(cpus * 1000)
	if float64(m) < cpus*1000-noise {
		m++
	}
	return m
}

// CPUs is the same as a number.
func (m Milli) CPUs() float64 { return float64(m) / 1000 }

// String is Kubernetes' quantity: "1500m"; "" is no limit.
func (m Milli) String() string {
	switch {
	case m == 0:
		return ""
	case m%1000 == 0:
		return strconv.FormatInt(int64(m/1000), 10)
	}
	return strconv.FormatInt(int64(m), 10) + "m"
}

// Near tells whether a limit is another one, as far as a quota tells: systemd rounds it.
func Near(cpus, other float64) bool { return math.Abs(cpus-other) <= max(0.015, 0.02*other) }

// maxMilli is more than any machine has.
const maxMilli = 1_000_000

// Parse is the inverse of String.
func Parse(value string) (Milli, error) {
	digits, milli := strings.CutSuffix(value, "m")
	n, err := strconv.ParseInt(digits, 10, 32)
	if !milli {
		n *= 1000
	}
	if err != nil || n <= 0 || n > maxMilli {
		return 0, fmt.Errorf("%.80q is no number of CPUs of a pod's spec", value)
	}
	return Milli(n), nil
}

// FS reads and resizes containers of this node's pods, which are named NAMESPACE/POD/CONTAINER.
type FS interface {
	// Read is what is there now. The error wraps fs.ErrNotExist if the pod, or its container, is not.
	Read(ctx context.Context, name string) (CPU, error)
	// Write asks for another limit, if it is from now.
	Write(ctx context.Context, name string, from, to Milli) error
	// Wait waits before the n-th further look at a resize under way; false: that took too long.
	Wait(ctx context.Context, n int) bool
}

// Name names a container.
func Name(namespace, pod, container string) string { return namespace + "/" + pod + "/" + container }

// IsName tells whether a name has its three parts.
func IsName(name string) bool {
	parts := strings.Split(name, "/")
	return len(parts) == 3 && parts[0] != "" && parts[1] != "" && parts[2] != ""
}

// Refused says that the API server or the kubelet does not resize.
type Refused struct {
	// Reason is one of the constants Pending..., or "" for the API server.
	Reason string
	// Message is theirs.
	Message string
}

func (r *Refused) Error() string {
	why := text.Sanitize(r.Message, mostMessage)
	switch r.Reason {
	case PendingDeferred:
		return fmt.Sprintf("the node has no room for it now (Deferred: %s); it is tried again later", why)
	case PendingInfeasible:
		return fmt.Sprintf("the kubelet cannot do it on this node (Infeasible: %s)", why)
	}
	return "the API server refuses it: " + why
}

const mostMessage = 500

// ErrChanged: the spec has neither value, as another program resized it meanwhile.
var ErrChanged = errors.New("another program resized it meanwhile")

// Done tells whether the kubelet has made it so. The error is a *Refused, or wraps ErrChanged.
func (c CPU) Done(to Milli) (bool, error) {
	switch {
	case c.Limit != to:
		return false, fmt.Errorf("%w: %s is %q", ErrChanged, Setting, c.Limit)
	case c.Pending != "":
		return false, &Refused{Reason: c.Pending, Message: c.Message}
	}
	return c.Actual == to && !c.Running, nil
}

// Fixed says why a limit cannot be changed by a resize alone; "": it can.
func (c CPU) Fixed() string {
	switch {
	case c.PodLevel:
		return "its pod has CPU resources of its own (spec.resources), which would still bind"
	case c.Restarts:
		return "its resizePolicy for cpu is RestartContainer, so that a resize would restart it"
	case c.Limit == 0:
		return "it has no CPU limit of its own in its pod's spec"
	}
	return ""
}

// Left says why a container is left to another program that resizes it; "": it is not.
func (c CPU) Left() string {
	switch {
	case c.Autoscaler != "":
		return "it is resized by " + c.Autoscaler + ", and the two would undo each other's limits"
	case c.Untold != "":
		return "whether a VerticalPodAutoscaler resizes it cannot be told: " + c.Untold
	}
	return ""
}
