package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	policyview "github.com/unthrottle/unthrottle/internal/ui/report/policy"
)

func (p *plugin) newPolicy() *cobra.Command {
	return p.addPod(&cobra.Command{
		Use:   "policy POD",
		Short: "Show the values in force for a pod, and why it is not treated",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			pod, err := c.pod(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			a, err := c.agentAt(cmd.Context(), pod)
			if err != nil {
				return err
			}
			defer a.done()
			report, err := a.policyOf(cmd.Context(), pod)
			if err != nil {
				return err
			}
			if p.output == "json" {
				return p.json(report)
			}
			for i, container := range report.Containers {
				if i > 0 {
					fmt.Fprintln(p.Out)
				}
				if err := policyview.Container(p.Out, report.Config, container, p.style()); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// policyOf is the policy of the containers of a pod that are asked for.
func (a *agent) policyOf(ctx context.Context, pod *core.Pod) (policy.Document, error) {
	var report policy.Document
	if err := a.ask(ctx, "/policy", &report); err != nil {
		return report, err
	}
	report.Containers = slices.DeleteFunc(report.Containers,
		func(container policy.ReportContainer) bool {
			return !a.isOf(pod, container.Namespace, container.Pod, container.Container)
		})
	if len(report.Containers) == 0 {
		return report, a.notSeen(pod)
	}
	return report, nil
}
