package consumer

import (
	"fmt"
	"slices"
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
	// Fields is how many fields of a pod it holds: values that are no object and no list. 0 is of no
	// interest.
	Fields int
	// Warm marks a variant that starts with what another process of it has kept in the folder that
	// WarmEnv names.
	Warm bool
	// Shared marks a variant that shares the objects with other processes of it. Only a command of
	// its own measures that, so it is chosen by name alone.
	Shared bool
	// Slow marks a variant that makes every snapshot from all objects.
	Slow bool

	make func() Consumer
}

// AllFields is how many fields a pod of the workload has, without managed fields.
const AllFields = 98

// pagedInformers makes client-go list in pages instead of streaming.
var pagedInformers = []string{"KUBE_FEATURE_WatchListClient=false"}

// Variants are all variants, in the order of the tables' columns.
var Variants = []Variant{
	{Name: "kates", Title: "kates", Fields: AllFields, make: newKates()},
	{Name: "kates-untyped", Title: "kates, untyped fields", make: newKatesUntyped()},
	{Name: "kates-observed", Title: "kates, with metrics and status page", make: newKatesObserved},
	{Name: "informers", Title: "typed informers + listers", make: newInformers(nil)},
	{Name: "cr-nocopy", Title: "controller-runtime cache, no copy", make: newRuntimeCache(true)},
	{Name: "cr", Title: "controller-runtime cache, copying", Slow: true, make: newRuntimeCache(false)},
	{Name: "dynamic", Title: "dynamic informers + conversion", Slow: true, make: newDynamic(false)},
	{Name: "reencode", Title: "re-encode everything", Slow: true, make: newDynamic(true)},
	{Name: "watch", Title: "bare typed watch", LatencyOnly: true, make: newBareWatch},

	{Name: "kates-names", Title: "kates, two fields of a pod", Fields: 2, BootstrapOnly: true, make: newKatesLite[NamedLite]},
	{Name: "kates-lite", Title: "kates, six fields of a pod", Fields: 6, BootstrapOnly: true, make: newKatesLite[PodLite]},
	{Name: "kates-listed", Title: "kates, twelve fields of a pod", Fields: 12, BootstrapOnly: true, make: newKatesLite[PodListed]},
	{Name: "kates-scheduled", Title: "kates, what a scheduler reads of a pod", Fields: 51, BootstrapOnly: true, make: newKatesLite[PodScheduled]},
	{Name: "kates-metadata", Title: "kates, metadata only", BootstrapOnly: true, make: newKatesMetadata},
	{Name: "informers-metadata", Title: "metadata informers", BootstrapOnly: true, make: newMetadataInformers},
	{Name: "kates-warm", Title: "kates, warm start", BootstrapOnly: true, Warm: true, make: newKatesWarm},
	{Name: "kates-sharded", Title: "kates, shared by replicas", BootstrapOnly: true, Shared: true, make: newKatesSharded},
	{Name: "kates-full", Title: "kates, everything kept", BootstrapOnly: true, make: newKates(kates.WithManagedFields())},
	{Name: "kates-streamed", Title: "kates, streamed lists", BootstrapOnly: true, make: newKates(kates.Tuning{Lists: kates.StreamedLists})},
	{Name: "informers-dropped", Title: "typed informers, no managedFields", BootstrapOnly: true, make: newInformers(dropManagedFields)},
	{Name: "informers-paged", Title: "typed informers, paged lists", BootstrapOnly: true, Env: pagedInformers, make: newInformers(nil)},
}

// Select returns the named variants in the order of Variants. Names are separated by blanks or
// commas; no names select all that are not Shared.
func Select(names string) ([]Variant, error) {
	wanted := strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' })
	if len(wanted) == 0 {
		return slices.DeleteFunc(slices.Clone(Variants), func(v Variant) bool { return v.Shared }), nil
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
