// Package generate writes the Go types and the schemas of the policies from the agent's own table of a rule's keys
// (policy.RuleKeys), so that they cannot differ, and the definition of NodeDemand from the bounds of package nodedemand.
//
// Its test compares what is in the tree with what would be written: UPDATE_GOLDEN=1 go test ./generate writes it.
package generate
