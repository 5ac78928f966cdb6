package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/test/lab/suite"
)

func needsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "needs [PACKAGE...]",
		Short: "Print the arguments for go test that run the tests which state a need on this host",
		RunE: func(cmd *cobra.Command, patterns []string) error {
			packages, _, err := suite.Find(cmd.Context(), suite.Host, patterns...)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(suite.GoTest(packages), " "))
			return nil
		},
	}
}
