// Package report turns measurements into tables, plots and a verdict on the targets.
//
// [Results] is the raw form, a JSON file. [Markdown] and [Plots] are made from it for people.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/kates-go/kates/bench/internal/stats"
)

// Results is everything that one campaign measured.
type Results struct {
	Machine Machine `json:"machine"`
	// Note is a remark by the person who ran it.
	Note string `json:"note,omitempty"`
	Runs int    `json:"runs"`
	// Updates is the number of updates in churn. ChangesAt is the number of pods at which
	// refreshes of several changes were measured.
	Updates   int       `json:"updates"`
	ChangesAt int       `json:"changesAt,omitempty"`
	Sizes     []Size    `json:"sizes"`
	Samples   []Sample  `json:"samples"`
	Startup   []Startup `json:"startup"`
	// Operators comes from a separate campaign. It is nil if there was none.
	Operators *Operators `json:"operators,omitempty"`
	// Gateways, too.
	Gateways *Gateways `json:"gateways,omitempty"`
	// Apart are the campaigns that measure something else with the same metrics.
	Apart map[Part]*Results `json:"apart,omitempty"`
}

// Part is a campaign whose results are apart from those of the sizes.
type Part string

// The parts.
const (
	// Crowd is a server of a million pods, which makes them as they are asked for.
	Crowd Part = "crowd"
	// Builds are first builds of programs.
	Builds Part = "builds"
	// Derived are programs that keep results up to date in different ways.
	Derived Part = "derived"
	// Shards are replicas that share the objects of a server. At: replicas.
	Shards Part = "shards"
)

// Put sets the results of a part.
func (r *Results) Put(p Part, of *Results) {
	if r.Apart == nil {
		r.Apart = make(map[Part]*Results)
	}
	r.Apart[p] = of
}

// Machine describes the machine.
type Machine struct {
	CPU      string   `json:"cpu"`
	Cores    int      `json:"cores"`
	MemoryGB float64  `json:"memoryGB"`
	OS       string   `json:"os"`
	Go       string   `json:"go"`
	Versions []string `json:"versions"`
	Date     string   `json:"date"`
	// LoadBefore is the load average of the minute before, LoadAfter that at the end.
	LoadBefore float64 `json:"loadBefore"`
	LoadAfter  float64 `json:"loadAfter"`
}

// Size is what the server held, with what was measured.
type Size struct {
	Pods          int `json:"pods"`
	JSONBytes     int `json:"jsonBytes"` // mean size of a pod
	ProtobufBytes int `json:"protobufBytes"`
}

// Startup lists a consumer's requests until its first snapshot.
type Startup struct {
	Consumer string   `json:"consumer"`
	Requests []string `json:"requests"`
}

// Sample is one number of one run of one consumer.
type Sample struct {
	Pods     int     `json:"pods"`
	Run      int     `json:"run"`
	Consumer string  `json:"consumer"`
	Metric   Metric  `json:"metric"`
	At       int     `json:"at,omitempty"` // the number of changes, or of cores
	Value    float64 `json:"value"`
}

// Metric says what a sample measures.
type Metric string

// The metrics, with their units.
const (
	BootstrapTime Metric = "bootstrap, s"
	BootstrapCPU  Metric = "bootstrap CPU, s"
	BootstrapPeak Metric = "bootstrap peak RSS, MB"
	HeapPerObject Metric = "live heap per object, bytes"
	HeapTotal     Metric = "live heap, MB"
	Requests      Metric = "requests at start-up"
	RefreshTime   Metric = "refresh after 1 change, ms"
	RefreshAlloc  Metric = "allocated for a refresh, MB"
	CloneTime     Metric = "clone of the pointer slices, ms"
	ChurnCPU      Metric = "churn CPU, s"
	ChurnStale    Metric = "stale after churn"
	ChurnLag      Metric = "last write of churn to fresh, s"
	LatencyP50    Metric = "write to visible p50, ms"
	LatencyP99    Metric = "write to visible p99, ms"
	OwnRead       Metric = "own write, object read by name p50, µs"
	OwnP50        Metric = "own write, next snapshot p50, µs"
	OwnP99        Metric = "own write, next snapshot p99, µs"
	ChangesTime   Metric = "refresh after several changes, ms" // At: changes
	EventRate     Metric = "events per second"                 // At: cores
	EventCPU      Metric = "CPU per event, µs"                 // At: cores
	EventAllocs   Metric = "allocations per event"             // At: cores
	Received      Metric = "received, MB"                      // up to the first snapshot
	BuildTime     Metric = "first build, s"
	BuildCPU      Metric = "first build, CPU s"
	BuildPackages Metric = "packages"
	BuildSize     Metric = "program, MB"
)

// The metrics of programs that keep results up to date. All times are CPU times.
const (
	RoutesFirst     Metric = "routing table, first, ms"
	RoutesChange    Metric = "routing table, an object changes, µs"
	RoutesMemory    Metric = "routing table, memory per entry without its value, bytes"
	PerPodFirst     Metric = "a result per pod, first, ms"
	PerPodPod       Metric = "a result per pod, a pod changes, µs"
	PerPodPolicy    Metric = "a result per pod, a policy of some changes, µs"
	PerPodWide      Metric = "a result per pod, a policy of all changes, ms"
	PerPodOwn       Metric = "of that, the functions of the program, ms"
	PerPolicyFirst  Metric = "a result per policy, first, ms"
	PerPolicyPod    Metric = "a result per policy, a pod changes, µs"
	PerPolicyPolicy Metric = "a result per policy, a policy changes, µs"
)

// Add adds a sample.
func (r *Results) Add(pods, run int, consumer string, m Metric, value float64) {
	r.AddAt(pods, run, consumer, m, 0, value)
}

// AddAt adds a sample of a metric that depends on one more value.
func (r *Results) AddAt(pods, run int, consumer string, m Metric, at int, value float64) {
	r.Samples = append(r.Samples, Sample{Pods: pods, Run: run, Consumer: consumer, Metric: m, At: at, Value: value})
}

// Keep adds older results for the sizes that the new ones lack. It keeps the older replay results
// if there are no new ones.
func (r *Results) Keep(old *Results) {
	measured := map[int]bool{}
	for _, s := range r.Samples {
		measured[s.Pods] = true
	}
	for _, s := range old.Sizes {
		if !measured[s.Pods] {
			r.Sizes = append(r.Sizes, s)
		}
	}
	for _, s := range old.Samples {
		if !measured[s.Pods] {
			r.Samples = append(r.Samples, s)
		}
	}
	for _, s := range old.Startup {
		if !slices.ContainsFunc(r.Startup, func(has Startup) bool { return has.Consumer == s.Consumer }) {
			r.Startup = append(r.Startup, s)
		}
	}
}

// runs returns the values of one cell by run.
func (r *Results) runs(pods int, consumer string, m Metric, at int) map[int]float64 {
	values := map[int]float64{}
	for _, s := range r.Samples {
		if s.Pods == pods && s.Consumer == consumer && s.Metric == m && s.At == at {
			values[s.Run] = s.Value
		}
	}
	return values
}

// median returns the median of all runs, and whether there are any.
func (r *Results) median(pods int, consumer string, m Metric, at int) (float64, bool) {
	var values []float64
	for _, v := range r.runs(pods, consumer, m, at) {
		values = append(values, v)
	}
	return stats.Median(values), len(values) > 0
}

// Write writes the results to a file, a sample per line.
func (r *Results) Write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.WriteFile(path, lines(text), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// lines breaks JSON text after the objects in arrays, so that diffs are readable.
func lines(text []byte) []byte {
	var out []byte
	for i, b := range text {
		out = append(out, b)
		if b == ',' && i > 0 && text[i-1] == '}' {
			out = append(out, '\n')
		}
	}
	return append(out, '\n')
}

// Read reads what Write wrote.
func Read(path string) (*Results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	r := new(Results)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read the results in %s: %w", path, err)
	}
	return r, nil
}
