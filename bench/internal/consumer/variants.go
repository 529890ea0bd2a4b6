package consumer

import (
	"fmt"
	"strings"

	"github.com/kates-go/kates/kates"
)

// A Variant is one way to keep the picture of the server.
type Variant struct {
	// Name is for command lines and results, Title for people.
	Name, Title string
	// Env is added to the environment of its process.
	Env []string
	// BootstrapOnly marks a variant that differs from another one only in its start and its
	// memory. LatencyOnly marks a variant without snapshots.
	BootstrapOnly, LatencyOnly bool
	// Slow marks a variant that makes every snapshot from all objects.
	Slow bool

	make func() Consumer
}

// pagedInformers makes client-go list in pages instead of streaming.
var pagedInformers = []string{"KUBE_FEATURE_WatchListClient=false"}

// Variants are all variants, in the order of the tables' columns.
var Variants = []Variant{
	{Name: "kates", Title: "kates", make: newKates()},
	{Name: "kates-untyped", Title: "kates, untyped fields", make: newKatesUntyped()},
	{Name: "kates-observed", Title: "kates, with metrics and status page", make: newKatesObserved},
	{Name: "informers", Title: "typed informers + listers", make: newInformers(nil)},
	{Name: "cr-nocopy", Title: "controller-runtime cache, no copy", make: newRuntimeCache(true)},
	{Name: "cr", Title: "controller-runtime cache, copying", Slow: true, make: newRuntimeCache(false)},
	{Name: "dynamic", Title: "dynamic informers + conversion", Slow: true, make: newDynamic(false)},
	{Name: "reencode", Title: "re-encode everything", Slow: true, make: newDynamic(true)},
	{Name: "watch", Title: "bare typed watch", LatencyOnly: true, make: newBareWatch},

	{Name: "kates-lite", Title: "kates, six fields of a pod", BootstrapOnly: true, make: newKatesLite()},
	{Name: "kates-full", Title: "kates, everything kept", BootstrapOnly: true, make: newKates(kates.WithManagedFields())},
	{Name: "kates-streamed", Title: "kates, streamed lists", BootstrapOnly: true, make: newKates(kates.Tuning{Lists: kates.StreamedLists})},
	{Name: "informers-dropped", Title: "typed informers, no managedFields", BootstrapOnly: true, make: newInformers(dropManagedFields)},
	{Name: "informers-paged", Title: "typed informers, paged lists", BootstrapOnly: true, Env: pagedInformers, make: newInformers(nil)},
}

// Select returns the named variants in the order of Variants. Names are separated by blanks or
// commas; no names select all.
func Select(names string) ([]Variant, error) {
	wanted := strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' })
	if len(wanted) == 0 {
		return Variants, nil
	}
	chosen := map[string]bool{}
	for _, name := range wanted {
		if _, err := ByName(name); err != nil {
			return nil, err
		}
		chosen[name] = true
	}
	var selected []Variant
	for _, v := range Variants {
		if chosen[v.Name] {
			selected = append(selected, v)
		}
	}
	return selected, nil
}

// ByName returns the variant of the name. The error for an unknown one lists the names.
func ByName(name string) (Variant, error) {
	var all []string
	for _, v := range Variants {
		if v.Name == name {
			return v, nil
		}
		all = append(all, v.Name)
	}
	return Variant{}, fmt.Errorf("there is no consumer %q, but: %s", name, strings.Join(all, ", "))
}
