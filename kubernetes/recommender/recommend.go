package recommender

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unthrottle/unthrottle/kubernetes/autoscalers"
)

// Name is that by which objects name this recommender.
const Name = "unthrottle"

// Report is what is read of the JSON of `unthrottle fleet report`.
type Report struct {
	Schema   string    `json:"schema"`
	Version  int       `json:"version"`
	Until    time.Time `json:"until"`
	Services []Service `json:"services"`
}

// Service is a container of a workload. Limits are in CPUs; nil is not known.
type Service struct {
	Workload *struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Container string `json:"container"`
	} `json:"workload"`
	Limit     *float64 `json:"limit_cpus"`
	LimitLow  *float64 `json:"limit_cpus_low"`
	LimitHigh *float64 `json:"limit_cpus_high"`
	// Unknown is how many of its containers are not sized, Young how many of these were observed for too short a time:
	// the limits hold for them too.
	Unknown int `json:"unknown"`
	Young   int `json:"young"`
}

// maxReport bounds what is read of a report: 100,000 services.
const maxReport = 128 << 20

// ReadReport reads a report.
func ReadReport(from io.Reader) (Report, error) {
	var r Report
	all, err := io.ReadAll(io.LimitReader(from, maxReport+1))
	switch {
	case err != nil:
		return r, err
	case len(all) > maxReport:
		return r, fmt.Errorf("it has more than %d MiB", maxReport>>20)
	}
	if err := json.Unmarshal(all, &r); err != nil {
		return r, fmt.Errorf("it is no JSON of 'unthrottle fleet report': %w", err)
	}
	if r.Schema != "fleet_report" || r.Version != 1 {
		return r, fmt.Errorf("it is no JSON of 'unthrottle fleet report' of version 1: its schema is %q, its version %d", r.Schema, r.Version)
	}
	return r, nil
}

// Container is one of a workload's template: its CPUs, nil where they are not set.
type Container struct {
	Name           string
	Request, Limit *float64
}

// Recommendation is one container's, in the form of autoscaling.k8s.io/v1.
type Recommendation struct {
	Container  string            `json:"containerName"`
	Target     map[string]string `json:"target"`
	Lower      map[string]string `json:"lowerBound"`
	Upper      map[string]string `json:"upperBound"`
	UncappedTo map[string]string `json:"uncappedTarget"`
}

// Target is what an object is about.
type Target struct{ Kind, Namespace, Name string }

// Left is a container without a recommendation, and why; of "" that is so of all.
type Left struct{ Container, Why string }

func (l Left) String() string { return strings.TrimPrefix(l.Container+": "+l.Why, ": ") }

// For are the recommendations for the containers of a workload, in their order. left are the others.
func For(r *Report, target Target, containers []Container,
	policy func(container string) autoscalers.Policy) (recommendations []Recommendation, left []Left) {
	for _, c := range containers {
		recommendation, why := r.one(target, c, policy(c.Name))
		if why != "" {
			left = append(left, Left{c.Name, why})
			continue
		}
		recommendations = append(recommendations, recommendation)
	}
	return recommendations, left
}

func (r *Report) one(of Target, c Container, p autoscalers.Policy) (recommendation Recommendation, why string) {
	if p.Off {
		return recommendation, "its policy is Off"
	}
	i := slices.IndexFunc(r.Services, func(s Service) bool {
		w := s.Workload
		return w != nil && w.Kind == of.Kind && w.Namespace == of.Namespace && w.Name == of.Name && w.Container == c.Name
	})
	switch {
	case i < 0:
		return recommendation, "the report does not have it"
	case c.Limit == nil || !(*c.Limit > 0):
		return recommendation, "its template has no limit"
	case p.RequestsOnly:
		return recommendation, "its policy controls requests only, and what is known is a limit"
	}
	s := &r.Services[i]
	if s.Unknown > s.Young || s.Limit == nil || s.LimitLow == nil || s.LimitHigh == nil || !(*s.LimitHigh > 0) ||
		math.IsInf(*s.LimitHigh, 1) {
		return recommendation, "what it needs is not known"
	}
	share := 1.0 // without a request Kubernetes takes the limit for it
	if c.Request != nil {
		share = *c.Request / *c.Limit
	}
	if !(share > 0) {
		return recommendation, "its template requests no CPU: nothing is in proportion to that"
	}
	within := func(cpus float64) float64 {
		if p.Least != nil {
			cpus = max(cpus, *p.Least)
		}
		if p.Most != nil {
			cpus = min(cpus, *p.Most)
		}
		return cpus
	}
	target, lower := share**s.LimitHigh, share*min(*s.LimitLow, *s.LimitHigh)
	return Recommendation{Container: c.Name, Target: cpu(within(target)), Lower: cpu(within(lower)),
		Upper: cpu(within(target)), UncappedTo: cpu(target)}, ""
}

// leastMillis is the least request that a recommender of autoscalers gives.
const leastMillis = 1

// cpu is a number of CPUs as a quantity, in thousandths and up.
func cpu(cpus float64) map[string]string {
	millis := max(leastMillis, int64(math.Ceil(1000*cpus-1e-6)))
	return map[string]string{"cpu": resource.NewMilliQuantity(millis, resource.DecimalSI).String()}
}
