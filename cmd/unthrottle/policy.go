package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/policy"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
)

// defaultConfig is where packages install the agent's file.
const defaultConfig = "/etc/unthrottle.yaml"

func newPolicy() *cobra.Command {
	var form output
	var config string
	cmd := &cobra.Command{
		Use:     "policy [TARGET]",
		GroupID: groupLook,
		Short:   "Show which rule is in force for a container, and why it is not treated",
		Long: `Show what the agent's file and a pod's annotations make of each container, and
why no remedy is in force for it; of one TARGET every value and its source.

It asks the agent that runs here. Without one it reads the file: then labels and
annotations of pods, and whether a container is treated, are not known.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rejectEmptyFlags(cmd, "config"); err != nil {
				return err
			}
			return runPolicy(cmd, config, form, args)
		},
	}
	form.add(cmd)
	shareString(cmd, &config, "config", defaultConfig, "")
	return cmd
}

func runPolicy(cmd *cobra.Command, config string, form output, args []string) error {
	rules, _, err := policy.ReadRules(cmd.Context(), config)
	if err != nil {
		return err
	}
	h, err := openCgroups()
	if err != nil {
		return err
	}
	report, err := askAgent(cmd.Context(), rules.Listen)
	if err != nil {
		say("%v: labels and annotations of pods, and whether a container is treated, are not known", err)
		if report, err = fromFile(h, config, rules); err != nil {
			return err
		}
	} else if report.Config != config {
		say("the agent at %s has the file %s", rules.Listen, text.Shown(report.Config))
	}
	out := cmd.OutOrStdout()
	if len(args) > 0 {
		target, _, err := resolve(h, args[0])
		if err != nil {
			return err
		}
		path := text.EscapePath(target.Group.Path)
		report.Containers = slices.DeleteFunc(report.Containers, func(c policy.ReportContainer) bool { return c.Cgroup != path })
		if len(report.Containers) == 0 {
			return untold(path, report.Agent != nil)
		}
	}
	switch {
	case form.json():
		return jsonout.Write(out, policy.ReportSchema, report)
	case len(args) > 0:
		return view.Container(out, report.Config, report.Containers[0], outStyle())
	}
	return view.All(out, report.Containers, outStyle())
}

// untold is the error for a cgroup that is not in the report of an agent or, where none was asked, in what the file says.
func untold(path string, asked bool) error {
	if !asked {
		return fmt.Errorf("%s: the file says nothing of it: it is outside of the file's scope, or no container", path)
	}
	return fmt.Errorf("%s: the agent has not seen it: it is new, outside of the agent's scope, or beyond the number of containers "+
		"that the agent exports", path)
}

// fromFile is what the file alone says.
func fromFile(h *cgroup.Host, config string, rules policy.Rules) (policy.Report, error) {
	report := policy.Report{Config: config, Containers: []policy.ReportContainer{}}
	containers, err := list(h, rules.Scope)
	if err != nil {
		return report, err
	}
	slices.SortFunc(containers, func(a, b container.Container) int { return strings.Compare(a.Group.Path, b.Group.Path) })
	for _, c := range containers {
		e := rules.Effective(c, policy.Pod{})
		report.Containers = append(report.Containers, rules.Container(c, e, e.Untreated()))
	}
	return report, nil
}

const (
	// askTime bounds the wait for the agent, askBytes its answer.
	askTime  = 10 * time.Second
	askBytes = 64 << 20
)

// askAgent asks the agent that listens there.
func askAgent(ctx context.Context, listen string) (policy.Report, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return policy.Report{}, err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/policy", nil)
	if err != nil {
		return policy.Report{}, err
	}
	client := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return policy.Report{}, fmt.Errorf("no agent answers at %s", listen)
	}
	defer answer.Body.Close()
	var document policy.Document
	err = json.NewDecoder(io.LimitReader(answer.Body, askBytes)).Decode(&document)
	switch {
	case answer.StatusCode != http.StatusOK:
		err = errors.New(answer.Status)
	case err == nil && (document.Schema != policy.ReportSchema || document.Agent == nil):
		err = errors.New("another program listens there")
	case err == nil && document.Version != policy.ReportVersion:
		err = fmt.Errorf("its answer has version %d, and this program reads %d", document.Version, policy.ReportVersion)
	}
	if err != nil {
		return policy.Report{}, fmt.Errorf("the agent at %s cannot be asked: %s", listen, text.Shown(err.Error()))
	}
	return document.Report, nil
}
