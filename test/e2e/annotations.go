package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// askedObjective is what the pod's annotation asks for. The rule has another one.
const askedObjective = "p99<15ms"

// policyOf is what unthrottle policy shows of one container.
type policyOf struct {
	Cgroup string `json:"cgroup"`
	Values []struct {
		Name       string  `json:"name"`
		Value      string  `json:"value"`
		Annotation *string `json:"annotation"`
	} `json:"values"`
	Refused []struct {
		Annotation string `json:"annotation"`
		Value      string `json:"value"`
	} `json:"refused_annotations"`
	Remedy *string `json:"remedy_in_force"`
	Reason *string `json:"reason"`
}

// policy asks the agent by the command, about a pod.
func (s *suite) policy(c *containerd, a *agent, pod string) (p policyOf, err error) {
	rules, err := os.ReadFile(filepath.Join(s.dir, "rules.yaml"))
	if err != nil {
		return p, err
	}
	config := filepath.Join(s.dir, "policy.yaml")
	if err := os.WriteFile(config, []byte(strings.Replace(string(rules), "127.0.0.1:0", a.address, 1)), 0o600); err != nil {
		return p, err
	}
	got, err := s.run(nil, nil, s.exe, "policy", c.namespace+"/"+pod, "--config", config, "--json")
	if err != nil {
		return p, err
	}
	var document struct {
		Containers []policyOf `json:"containers"`
	}
	if err := json.Unmarshal([]byte(got.out), &document); err != nil {
		return p, err
	}
	if len(document.Containers) != 1 {
		return p, fmt.Errorf("%d containers in %s", len(document.Containers), got.out)
	}
	return document.Containers[0], nil
}

// annotated checks the app's policy, whose remedy is in force.
func (s *suite) annotated(c *containerd, a *agent) error {
	p, err := s.policy(c, a, c.pod)
	if err != nil {
		return err
	}
	objective := ""
	for _, v := range p.Values {
		if v.Name == "slo.objective" && v.Annotation != nil {
			objective = v.Value
		}
	}
	err = errors.Join(equal("cgroup", p.Cgroup, c.appCgroup()), equal("objective", objective, askedObjective),
		equal("in force", value(p.Remedy), "raise"))
	if len(p.Refused) != 1 || p.Refused[0].Value != "pin" {
		err = errors.Join(err, fmt.Errorf("refused: %+v", p.Refused))
	}
	return err
}

// optsOut runs a second pod, like the first one, whose annotation opts out.
func (s *suite) optsOut(c *containerd, a *agent) error {
	dir := c.dir
	text, err := os.ReadFile(filepath.Join(dir, "pod.json"))
	if err != nil {
		return err
	}
	const name, uid = "crate-1", "8d2e3f40-6b7c-4e8d-9fa0-bcdef0123456"
	var pod map[string]any
	if err := json.Unmarshal(text, &pod); err != nil {
		return err
	}
	pod["metadata"] = map[string]any{"name": name, "namespace": c.namespace, "uid": uid}
	pod["annotations"] = map[string]any{"unthrottle.dev/remedy": "none"}
	linux, _ := pod["linux"].(map[string]any)
	cgroup := path.Join(path.Dir(c.podCgroup()), "pod"+uid)
	linux["cgroup_parent"] = cgroup
	if text, err = json.Marshal(pod); err != nil {
		return err
	}
	config := filepath.Join(dir, "pod-1.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	sandbox, err := s.cri(c, "runp", config)
	if err != nil {
		return err
	}
	c.others = append(c.others, sandbox)
	app, err := s.cri(c, "create", sandbox, filepath.Join(dir, "app.json"), config)
	if err != nil {
		return err
	}
	if _, err := s.cri(c, "start", app); err != nil {
		return err
	}
	kernel := newSettings(cgroup + "/" + app)
	return a.explain(eventually(func() error {
		p, err := s.policy(c, a, name)
		return errors.Join(err, equal("reason", value(p.Reason), "opted-out"), equal("the quota", kernel.quota(), fmt.Sprint(slow)))
	}))
}
