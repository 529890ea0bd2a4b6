package kates

import (
	"reflect"

	"github.com/kates-go/kates/internal/client/shared"
	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/internal/engine/query"
)

// Other packages of the library get these, and programs do not.
func init() {
	doors.Client = func(client any) *shared.Client { return client.(*Client).core }
	doors.Queries = func(all []query.Status) any { return statusOf(all).Queries }
	doors.Controller = func(client any, name string, t, special reflect.Type, options any) (any, error) {
		return planController(client.(*Client), name, t, special, options.([]RunOption))
	}
	doors.Fleet = func(run doors.FleetRun, options any) (any, error) {
		return planFleet(run, options.([]RunOption))
	}
	doors.Need = func(needs any, err error) any { return foreign{needs.([]Need), err} }
	doors.Leased = leased{}
	doors.Watches = func(t reflect.Type, options any) any { return watches{t, options.([]RunOption)} }
}
