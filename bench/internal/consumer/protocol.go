package consumer

import "github.com/kates-go/kates/bench/internal/dialog"

// Command asks a consumer's process for one measurement. Commands and answers are lines of JSON.
// Every command has one answer; Await has two.
type Command struct {
	Do What `json:"do"`
	// Marks are what objects must show, by namespace/name.
	Marks map[string]string `json:"marks,omitempty"`
	// Pod is the namespace/name to wait for.
	Pod string `json:"pod,omitempty"`
	// Seconds is the longest time to wait. For Churn it is the time of a reconcile.
	Seconds float64 `json:"seconds,omitempty"`
	// Times is how often to do it.
	Times int `json:"times,omitempty"`
	// Path is where to write profiles: Path.cpu and Path.heap.
	Path string `json:"path,omitempty"`
}

// What is a command's verb.
type What string

// The verbs, with the fields of the Answer that they fill.
const (
	// Bootstrap starts the consumer: Seconds, CPU, PeakBytes, Objects, Requests, Received.
	Bootstrap What = "bootstrap"
	// Heap measures the live heap: Bytes, Objects of the first snapshot. Received as well.
	Heap What = "heap"
	// Drain takes snapshots until no change is signalled.
	Drain What = "drain"
	// Refresh makes one snapshot: Seconds, Bytes, Objects, Missing, CloneSeconds.
	Refresh What = "refresh"
	// Await answers once when it begins to wait, and again when the pod has a new mark: Mark,
	// UnixNano.
	Await What = "await"
	// Churn starts a reconciler. Settle waits until it has seen the marks, and ends it: Seconds,
	// CPU and Allocations since Churn, Missing, Snapshots, UnixNano of the last snapshot.
	Churn  What = "churn"
	Settle What = "settle"
	// Own lets the consumer write marks itself. Samples are seconds from the return of the write
	// to the return of the snapshot that shows it. Reads are the same to the return of reading
	// the object by name. Both are empty for a consumer that is no OwnWriter.
	Own What = "own"
	// Profile starts a CPU profile. EndProfile writes it and a heap profile.
	Profile    What = "profile"
	EndProfile What = "endprofile"
)

// Answer holds the results.
type Answer struct {
	dialog.Outcome
	Seconds      float64   `json:"seconds,omitempty"`
	CPU          float64   `json:"cpu,omitempty"`
	Allocations  float64   `json:"allocations,omitempty"`
	PeakBytes    float64   `json:"peakBytes,omitempty"`
	Bytes        float64   `json:"bytes,omitempty"`
	CloneSeconds float64   `json:"cloneSeconds,omitempty"`
	Objects      int       `json:"objects,omitempty"`
	Missing      int       `json:"missing,omitempty"`
	Snapshots    int       `json:"snapshots,omitempty"`
	Requests     []string  `json:"requests,omitempty"`
	Received     float64   `json:"received,omitempty"` // bytes
	Mark         string    `json:"mark,omitempty"`
	UnixNano     int64     `json:"unixNano,omitempty"`
	Samples      []float64 `json:"samples,omitempty"`
	Reads        []float64 `json:"reads,omitempty"`
}
