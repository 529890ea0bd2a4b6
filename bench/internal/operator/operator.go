// Package operator holds one operator, written with several libraries, and measures one of them
// from within its own process. Package api says what all of them do. Package withkates is the
// operator on kates' controllers, withruntime that on controller-runtime.
//
// [Variants] lists them. [Serve] runs one, on commands that package campaign writes to its
// standard input. Package judge decides whether it has done its work.
package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kates-go/kates/bench/internal/operator/withkates"
	"github.com/kates-go/kates/bench/internal/operator/withruntime"
)

// A Variant is the operator on one library.
type Variant struct {
	// Name is for command lines and results, Title for people.
	Name, Title string
	// Brief marks a variant that shows what a choice costs. It is measured in the first run only.
	Brief bool
	// Sources are its Go files, without what all share and what measures it.
	Sources []string

	run func(ctx context.Context, config *rest.Config, workers int, m *Meter) error
}

// Variants are all variants, in the order of the tables' columns.
var Variants = []Variant{
	{Name: "kates", Title: "kates", Sources: []string{withkates.Source}, run: runKates},
	{
		Name: "cr", Title: "controller-runtime", Sources: []string{withruntime.Source, withruntime.UpdateSource},
		run: onRuntime(withruntime.Options{Put: withruntime.CreateOrUpdate}),
	}, {
		Name: "cr-apply", Title: "the same, server-side apply", Brief: true,
		Sources: []string{withruntime.Source, withruntime.ApplySource},
		run:     onRuntime(withruntime.Options{Put: withruntime.Apply}),
	}, {
		Name: "cr-consistent", Title: "the same, reads wait for own writes", Brief: true,
		Sources: []string{withruntime.Source, withruntime.UpdateSource},
		run:     onRuntime(withruntime.Options{Put: withruntime.CreateOrUpdate, ReadYourWrites: true}),
	},
}

func runKates(ctx context.Context, config *rest.Config, workers int, m *Meter) error {
	return withkates.Run(ctx, config, workers, m.Reconcile)
}

func onRuntime(o withruntime.Options) func(context.Context, *rest.Config, int, *Meter) error {
	return func(ctx context.Context, config *rest.Config, workers int, m *Meter) error {
		log.SetLogger(logr.Discard())
		o.Workers = workers
		return withruntime.Run(ctx, config, o, func(r reconcile.Reconciler) reconcile.Reconciler { return metered{r, m} })
	}
}

// metered counts the reconciles of a reconciler.
type metered struct {
	reconcile.Reconciler
	meter *Meter
}

// Reconcile counts a reconcile.
func (r metered) Reconcile(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
	err = r.meter.Reconcile(ctx, func(ctx context.Context) error {
		result, err = r.Reconciler.Reconcile(ctx, request)
		return err
	})
	return result, err
}

// Select returns the named variants in the order of Variants. Names are separated by blanks or
// commas; no names select all.
func Select(names string) ([]Variant, error) {
	wanted := strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' })
	if len(wanted) == 0 {
		return Variants, nil
	}
	byName := make(map[string]bool)
	for _, name := range wanted {
		if _, err := ByName(name); err != nil {
			return nil, err
		}
		byName[name] = true
	}
	return slices.DeleteFunc(slices.Clone(Variants), func(v Variant) bool { return !byName[v.Name] }), nil
}

// ByName returns the variant of the name. The error for an unknown one lists the names.
func ByName(name string) (Variant, error) {
	names := make(map[string]Variant, len(Variants))
	for _, v := range Variants {
		names[v.Name] = v
	}
	v, ok := names[name]
	if !ok {
		return Variant{}, fmt.Errorf("there is no operator %q, but: %s", name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	return v, nil
}
