package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// rowsWithin is how long the first rows of a node take at most: two slots of five minutes, and a look.
const rowsWithin = 12 * time.Minute

// demand has the node tell its scheduler what its containers want, by rows that the agent keeps there.
func (s *suite) demand(k *cluster, o chartOptions) {
	flags := []string{"--set", "demand.enabled=true"}
	if !k.whole {
		flags = append(flags, "--set", "host.rows="+k.file("rows"))
	}
	_, err := s.upgradeChart(k, o, flags...)
	if s.check("demand: helm upgrades the chart to demand.enabled", errors.Join(err, s.rolledOut(k))) != nil {
		return
	}
	var object struct {
		Spec struct {
			Until      time.Time
			Containers []struct{ Namespace, Pod, Container string }
		}
	}
	names := func() (text string, all []string, err error) {
		if text, err = s.kubectl(k, "get", "nodedemand", k.node, "-o", "json"); err == nil {
			err = json.Unmarshal([]byte(text), &object)
		}
		for _, c := range object.Spec.Containers {
			all = append(all, c.Namespace+"/"+c.Pod+"/"+c.Container)
		}
		return text, all, err
	}
	began := time.Now()
	for end := began.Add(rowsWithin); ; time.Sleep(5 * time.Second) {
		_, all, asked := names()
		if err = asked; err == nil && !strings.Contains(strings.Join(all, " "), cartFull) {
			err = fmt.Errorf("%s is not among %v", cartFull, all)
		}
		if err == nil || s.ctx.Err() != nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		logs, _ := s.kubectl(k, "logs", "-n", "unthrottle", "ds/unthrottle", "-c", "demand", "--tail=20")
		err = fmt.Errorf("%w\n%s", err, logs)
	}
	s.check(fmt.Sprintf("demand: after %s the node's object tells of %d containers", time.Since(began).Round(time.Second),
		len(object.Spec.Containers)), err)
	// The agents' service account writes its own node's object alone. Impersonated it has no node.
	_, err = s.run(strings.NewReader(`{"apiVersion":"unthrottle.dev/v1alpha1","kind":"NodeDemand","metadata":{"name":"another"},`+
		`"spec":{"version":1,"until":"2026-01-01T00:00:00Z","containers":[]}}`), []string{"KUBECONFIG=" + k.config}, k.program("kubectl"),
		"create", "-f", "-", "--as", "system:serviceaccount:unthrottle:unthrottle")
	s.check("demand: the admission policy refuses the object of another node", wants(err, "names no node"))
	if o.scheduler != "" {
		s.scheduler(k, o)
	}
	_, err = s.upgradeChart(k, o, "--set", "demand.enabled=false")
	s.check("demand: it is off again", errors.Join(err, s.rolledOut(k)))
}
