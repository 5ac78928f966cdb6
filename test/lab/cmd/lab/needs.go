package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/suite"
)

func needsCommand() *cobra.Command {
	var alone, beside, long bool
	cmd := &cobra.Command{
		Use:   "needs [PACKAGE...]",
		Short: "Print the arguments for go test that run the tests which state a need on this host",
		RunE: func(cmd *cobra.Command, patterns []string) error {
			packages, _, err := suite.Find(cmd.Context(), suite.Host, patterns...)
			if err != nil {
				return err
			}
			if alone {
				packages = suite.Alone(packages)
			}
			if beside {
				packages = suite.Beside(packages)
			}
			switch {
			case long:
				packages = suite.Long(packages)
			case !require.Whole():
				packages = suite.NotLong(packages)
			}
			if len(packages) == 0 {
				return errors.New("no such test in these packages")
			}
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(suite.GoTest(packages), " "))
			return nil
		},
	}
	cmd.Flags().BoolVar(&alone, "alone", false, "only the tests with require.Alone, beside which nothing else may run")
	cmd.Flags().BoolVar(&beside, "beside", false, "only the others")
	cmd.Flags().BoolVar(&long, "check-all", false, "only the tests with require.CheckAll; without this flag, only the others")
	cmd.MarkFlagsMutuallyExclusive("alone", "beside")
	return cmd
}
