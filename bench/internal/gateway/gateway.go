// Package gateway holds one gateway with nginx, written in two ways, and measures one of them from
// within its own process. Package withkates is examples/gateway: a snapshot of everything becomes
// one configuration. Package withruntime is the same for Ingresses, with a reconcile for each of
// them. Both use the packages translate and nginx of examples/gateway.
//
// [Variants] lists them. [Serve] runs one, on commands that package campaign writes to its
// standard input. [Web] notes when a change is in effect.
package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kates-go/kates/bench/internal/gateway/withkates"
	"github.com/kates-go/kates/bench/internal/gateway/withruntime"
	"github.com/kates-go/kates/bench/internal/operator"
	"github.com/kates-go/kates/bench/internal/workload"
	"github.com/kates-go/kates/examples/gateway/translate"
)

// A Variant is one way to write the gateway.
type Variant struct {
	// Name is for command lines and results, Title for people.
	Name, Title string

	run     func(ctx context.Context, config *rest.Config, web *Web) error
	sources func() []string
}

// Variants are all variants, in the order of the tables' columns.
var Variants = []Variant{
	{Name: "kates", Title: "kates, by snapshots", run: runKates, sources: withkates.Sources},
	{Name: "cr", Title: "controller-runtime, per object", run: runRuntime, sources: withruntime.Sources},
}

// Lines returns how many lines of code read from the API and write to it, 0 if that is not known.
func (v Variant) Lines() (n int) {
	for _, s := range v.sources() {
		n += operator.LinesOf(s)
	}
	return n
}

// translation is the same for both.
func translation() translate.Options {
	return translate.Options{Published: []string{"192.0.2.1"}, Port: func(named int) int { return 8000 + named }}
}

func runKates(ctx context.Context, config *rest.Config, web *Web) error {
	return withkates.Run(ctx, config, workload.WebNamespace, web, translation())
}

func runRuntime(ctx context.Context, config *rest.Config, web *Web) error {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // of the lease
	return withruntime.Run(ctx, config, workload.WebNamespace, web, translation())
}

// Select returns the named variants in the order of Variants. Names are separated by blanks or
// commas; no names select all.
func Select(names string) ([]Variant, error) {
	wanted := strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' })
	for _, name := range wanted {
		if _, err := ByName(name); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(Variants), func(v Variant) bool {
		return len(wanted) > 0 && !slices.Contains(wanted, v.Name)
	}), nil
}

// ByName returns the variant of the name. The error for an unknown one lists the names.
func ByName(name string) (Variant, error) {
	var names []string
	for _, v := range Variants {
		if v.Name == name {
			return v, nil
		}
		names = append(names, v.Name)
	}
	return Variant{}, fmt.Errorf("there is no gateway %q, but: %s", name, strings.Join(names, ", "))
}
