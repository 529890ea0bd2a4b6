package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kates-go/kates/examples/snapwatch/output"
	"github.com/kates-go/kates/kates"
)

// completionTime bounds what a completion asks the server.
const completionTime = 5 * time.Second

const noFiles = cobra.ShellCompDirectiveNoFileComp

// complete adds the completion of arguments and flags. Descriptions are after a tab, as cobra has
// them.
func (o *options) complete(cmd *cobra.Command) {
	cmd.ValidArgsFunction = o.completeKinds
	values := func(all ...string) cobra.CompletionFunc { return cobra.FixedCompletions(all, noFiles) }
	for name, f := range map[string]cobra.CompletionFunc{
		"output": values(output.Formats()...),
		"for": values("condition=\ta condition is True", "jsonpath=\ta field has a value", "create\tthere is one",
			"delete\tthere is none", "current\tit is as its spec wants it"),
		"speed":     values("1", "2", "10", "fastest"),
		"serve":     values(":8080"),
		"namespace": o.completeNamespaces,
		"context":   o.completeContexts,
	} {
		if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
			panic(err) // a flag of this program does not exist
		}
	}
}

// completeContexts has the contexts of the kubeconfig.
func (o *options) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	raw, err := o.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, noFiles
	}
	var names []string
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, noFiles
}

// asking calls a function with a client, for a completion. What cannot be found out completes
// nothing.
func (o *options) asking(cmd *cobra.Command, f func(context.Context, *connection) []string) ([]string, cobra.ShellCompDirective) {
	o.record = "" // a completion records nothing
	c, err := o.connect(nil)
	if err != nil {
		return nil, noFiles
	}
	defer func() { _ = c.close() }() // nothing is recorded
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	return f(ctx, c), noFiles
}

func (o *options) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return o.asking(cmd, func(ctx context.Context, c *connection) []string {
		return names(ctx, c.client, kates.Query{Kind: "namespaces"})
	})
}

// completeKinds has the kinds, or behind TYPE/ the names of its objects.
func (o *options) completeKinds(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	before := text[:strings.LastIndex(text, ",")+1]
	kind, _, named := strings.Cut(text[len(before):], "/")
	found, directive := o.asking(cmd, func(ctx context.Context, c *connection) []string {
		if !named {
			return watchable(c.client)
		}
		return names(ctx, c.client, kates.Query{Kind: kind, Namespace: o.namespace(c)})
	})
	if named {
		before += kind + "/"
	}
	for i := range found {
		found[i] = before + found[i]
	}
	return found, directive | cobra.ShellCompDirectiveNoSpace
}

// watchable has the kinds that can be watched, and their short names.
func watchable(client *kates.Client) (all []string) {
	resources, _ := client.ServerPreferredResources() // what can be read is enough here
	for _, r := range resources {
		if !slices.Contains(r.Verbs, "watch") || strings.Contains(r.Name, "/") {
			continue
		}
		name := r.Name
		if slices.Contains(all, name) {
			name += "." + r.Group
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func names(ctx context.Context, client *kates.Client, q kates.Query) (all []string) {
	if m, err := client.Mapping(ctx, q.Kind); err != nil || m.Scope.Name() == "root" {
		q.Namespace = ""
	}
	var objects []*kates.PartialObjectMetadata
	if client.List(ctx, q, &objects) != nil {
		return nil
	}
	for _, o := range objects {
		all = append(all, o.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
