package main

import (
	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/explain/live"
	explainview "github.com/unthrottle/unthrottle/internal/ui/report/explain"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/rows"
)

func (p *plugin) newExplain() *cobra.Command {
	var at string
	return addAt(p.addPod(&cobra.Command{
		Use:   "explain POD",
		Short: "Say why a pod was stopped, and who spent the quota",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withRecording(cmd.Context(), args[0], at, func(file string) error {
				e, err := live.File(cmd.Context(), file)
				if err != nil {
					return err
				}
				o := explainview.Options{Style: p.style()}
				var shown *rows.Recommended
				made, choice, err := forecastOf(cmd.Context(), file)
				if err != nil {
					o.NotForecast = err.Error()
				} else {
					shown = o.Recommend(&e, made, &choice)
				}
				if p.output == "json" {
					return explainview.JSON(p.Out, e, shown)
				}
				return explainview.Write(p.Out, e, o)
			})
		},
	}), &at)
}
