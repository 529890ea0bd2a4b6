// Package doors has what packages of this library get from package kates, and programs do not.
//
// Package kates sets each variable when the program starts. A package that imports kates may use
// them. The types of package kates are any here, since kates imports this package.
package doors

import (
	"reflect"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/client/shared"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/loops/keyed"
)

var (
	// Client returns what a *kates.Client has in common with those that its With returns.
	Client func(client any) *shared.Client
	// Queries returns statuses as []kates.QueryStatus.
	Queries func(all []query.Status) any
	// Controller reads the struct type and the []kates.RunOption of a controller of a
	// *kates.Client, as far as that is possible without a request. A field of the special type is
	// no query. The result is a *keyed.Plan[kates.Status].
	Controller func(client any, name string, t, special reflect.Type, options any) (any, error)
	// Fleet reads the []kates.RunOption of a run over many clusters. The result is a
	// *keyed.FleetPlan[kates.RunOption, kates.Query].
	Fleet func(run FleetRun, options any) (any, error)
	// Need makes a kates.Need of several, a []kates.Need, or one that fails with an error.
	Need func(needs any, err error) any
	// Leased is the kates.Need of what writes under a lease that another cluster has.
	Leased any
	// Watches is kates.Watches for a struct type and []kates.RunOption.
	Watches func(t reflect.Type, options any) any
	// Info is the type controller.Info, nil in a program without package controller, which sets it.
	Info reflect.Type
)

// FleetRun is a run over many clusters.
type FleetRun struct {
	Home    any          // a *kates.Client of the cluster that has Leases, or a nil one
	Clients any          // the []kates.Option of the clusters' clients
	Loops   *keyed.Loops // those of the fleet
	Name    string
	Log     logr.Logger
}
