package fleet

import (
	"net/http"
	"time"

	"github.com/kates-go/kates/internal/base/health"
	"github.com/kates-go/kates/internal/doors"
)

// Readyz is a readiness probe, an [http.HandlerFunc]: see [Fleet.ReadyCheck], and
// kates.Client.Readyz for the form of the answer.
func (f *Fleet) Readyz(w http.ResponseWriter, r *http.Request) {
	health.Serve(w, r, "readyz", f.readyChecks)
}

// Healthz is a liveness probe, an [http.HandlerFunc]: see [Fleet.HealthCheck].
func (f *Fleet) Healthz(w http.ResponseWriter, r *http.Request) {
	health.Serve(w, r, "healthz", f.healthChecks)
}

// ReadyCheck is nil once [Fleet.Ready] is, and the client of the home cluster is ready, if there
// is one (kates.Client.ReadyCheck); and from then on for ever. Other clusters do not count: one
// that does not answer takes no program out of service.
func (f *Fleet) ReadyCheck(*http.Request) error { return health.Errors(f.readyChecks()) }

// HealthCheck says what hangs in a client of the fleet, that of the home cluster included: see
// kates.Client.HealthCheck. A cluster that does not answer hangs nothing.
func (f *Fleet) HealthCheck(*http.Request) error { return health.Errors(f.healthChecks()) }

func (f *Fleet) readyChecks() []health.Check {
	all := []health.Check{{Name: "sources", Err: f.Ready(), Brief: "one has not said yet which clusters there are"}}
	if f.options.Home != nil {
		all = append(all, of("home", doors.Client(f.options.Home).ReadyChecks())...)
	}
	if f.ready.Load() {
		for i := range all {
			all[i].Err = nil // never back
		}
	} else if health.Errors(all) == nil {
		f.ready.Store(true)
	}
	return all
}

func (f *Fleet) healthChecks() (all []health.Check) {
	if f.options.Home != nil {
		all = of("home", doors.Client(f.options.Home).HealthChecks())
	}
	for _, c := range f.Clusters() {
		all = append(all, of("cluster "+c.name, doors.Client(c.client).HealthChecks())...)
	}
	for _, o := range f.loops.Overdue(time.Now()) {
		all = append(all, health.OfCalls(o))
	}
	return all
}

// of names checks by whose they are.
func of(whose string, all []health.Check) []health.Check {
	for i := range all {
		all[i].Name = whose + ": " + all[i].Name
	}
	return all
}
