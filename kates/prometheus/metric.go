package prometheus

import (
	prom "github.com/prometheus/client_golang/prometheus"
)

// The types of metrics, in the words of Prometheus.
const (
	counterType   = "counter"
	gaugeType     = "gauge"
	histogramType = "histogram"
)

// metric says what a metric is. Every metric has the label cluster before its own.
type metric struct {
	name, kind, help string
	labels           []string
	buckets          []float64 // of a histogram
	desc             *prom.Desc
}

// maxLabels is how many labels a metric has at most, but for cluster.
const maxLabels = 3

// all are the metrics of this package, in the order of their definition.
var all []*metric

func define(m *metric) *metric {
	if len(m.labels) > maxLabels {
		panic(m.name + " has too many labels")
	}
	m.desc = prom.NewDesc(m.name, m.help, m.allLabels(), nil)
	all = append(all, m)
	return m
}

func (m *metric) allLabels() []string { return append([]string{"cluster"}, m.labels...) }

func gauge(name, help string, labels ...string) *metric {
	return define(&metric{name: name, kind: gaugeType, help: help, labels: labels})
}

func counter(name, help string, labels ...string) *metric {
	return define(&metric{name: name, kind: counterType, help: help, labels: labels})
}

func histogram(name, help string, buckets []float64, labels ...string) *metric {
	return define(&metric{name: name, kind: histogramType, help: help, labels: labels, buckets: buckets})
}

// Buckets of histograms. Those of requests are client-go's, and those of calls are
// controller-runtime's without every second one.
var (
	requestBuckets = []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}
	updateBuckets  = []float64{0.00001, 0.0001, 0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10}
	firstBuckets   = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900}
	callBuckets    = []float64{0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
	objectBuckets  = []float64{1, 2, 5, 10, 50, 100, 500, 1000, 5000, 10000, 100000}
)

// Clients and watches.
var (
	clients = gauge("kates_clients",
		"Open clients.")
	watches = gauge("kates_watches",
		"Open watches. The kind says who reads them: snapshots, partitions or a lister.", "watch", "kind")
	watchesIncomplete = gauge("kates_watches_incomplete",
		"Open watches whose first snapshot is not complete yet.", "watch")
	watchIncompleteAge = gauge("kates_watch_incomplete_age_seconds",
		"Time since the oldest watch without a complete first snapshot was opened. 0 if there is none.", "watch")
	watchFirst = histogram("kates_watch_first_snapshot_duration_seconds",
		"Time from the opening of a watch to its first snapshot.", firstBuckets, "watch")
	watchSignals = counter("kates_watch_signals_total",
		"Signals that a new snapshot can be taken.", "watch")
	watchUpdates = counter("kates_watch_updates_total",
		"Calls of Update that found a complete snapshot.", "watch")
	watchSnapshots = counter("kates_watch_snapshots_total",
		"Snapshots delivered that differ from the one before. For partitions: turns.", "watch")
	watchChanges = counter("kates_watch_changed_objects_total",
		"Objects that snapshots have added, changed or removed.", "watch")
	updateDuration = histogram("kates_watch_update_duration_seconds",
		"Time that an Update takes which delivers a snapshot.", updateBuckets, "watch")
	updateChanges = histogram("kates_watch_update_changed_objects",
		"Objects that a snapshot adds, changes or removes.", objectBuckets, "watch")
)

// Queries.
var (
	queries = gauge("kates_queries",
		"Queries by state: waiting, listing, synced, retrying, forbidden or missing.", "watch", "query", "state")
	queryAbsent = gauge("kates_query_absent",
		"Optional queries that count as empty, because the kind does not exist or may not be read.", "watch", "query")
	queryObjects = gauge("kates_query_objects",
		"Objects that the watch holds for the query.", "watch", "query")
	queryBytes = gauge("kates_query_bytes",
		"Estimated memory of the query's objects. Queries that share a stream share it.", "watch", "query")
	queryInvalid = gauge("kates_query_invalid_objects",
		"Objects that the snapshot leaves out, because they do not decode or are rejected.", "watch", "query")
	queryEvents = counter("kates_query_events_total",
		"How often something has changed for the query.", "watch", "query")
	queryCoalesced = counter("kates_query_coalesced_events_total",
		"Changes of an object that had changed before and was in no snapshot yet. No snapshot shows what was between.",
		"watch", "query")
	queryUntaken = gauge("kates_query_untaken_objects",
		"Objects that have changed and are in no snapshot yet.", "watch", "query")
	queryUntakenAge = gauge("kates_query_untaken_age_seconds",
		"Time since the first of the objects has changed that are in no snapshot yet. 0 if there is none.", "watch", "query")
	queryStaleness = gauge("kates_query_staleness_seconds",
		"Time since the server last said anything about the query. A quiet watch has a bookmark about every minute.",
		"watch", "query")
	queryLag = gauge("kates_query_lag_seconds",
		"How far behind the server the query may be: 0 while its watches are open.", "watch", "query")
)

// Streams: a list and a watch of one resource each.
var (
	streams = gauge("kates_streams",
		"Streams by state: waiting, listing, synced, retrying, forbidden or missing.", "resource", "form", "state")
	streamListeners = gauge("kates_stream_listeners",
		"Queries that read the streams.", "resource", "form")
	streamObjects = gauge("kates_stream_objects",
		"Objects that the streams hold.", "resource", "form")
	streamBytes = gauge("kates_stream_bytes",
		"Estimated memory of the objects that the streams hold.", "resource", "form")
	streamListing = gauge("kates_stream_listing_objects",
		"Objects that the lists under way have brought.", "resource", "form")
	streamStaleness = gauge("kates_stream_staleness_seconds",
		"Time since the server last said anything on the stream that is silent for longest.", "resource", "form")
	streamEvents = counter("kates_stream_events_total",
		"Events that watches have brought, without bookmarks.", "resource", "form")
	streamBookmarks = counter("kates_stream_bookmarks_total",
		"Bookmarks that watches have brought.", "resource", "form")
	streamUndecodable = counter("kates_stream_undecodable_objects_total",
		"Objects of lists and events that did not decode, or whose transform failed.", "resource", "form")
	streamLists = counter("kates_stream_lists_total",
		"Lists begun, by the reason for them.", "resource", "form", "reason")
	streamWatches = counter("kates_stream_watches_total",
		"Watches begun at the server, by the reason for them.", "resource", "form", "reason")
)

// Own writes.
var (
	writesPending = gauge("kates_own_writes_pending",
		"Writes of this program that no watch has shown yet.", "resource")
	writesPendingAge = gauge("kates_own_writes_pending_age_seconds",
		"Time since the oldest write was answered that no watch has shown yet. 0 if there is none.", "resource")
	writesUnsettled = gauge("kates_own_writes_unsettled",
		"Pending writes of which the server could not say what they mean for a query.", "resource")
)

// Requests.
var (
	requests = counter("kates_requests_total",
		"Requests answered, by HTTP status. The code is <error> if there was no answer.", "verb", "resource", "code")
	requestDuration = histogram("kates_request_duration_seconds",
		"Time from sending a request to the header of its answer, without the wait for the client's own rate limit.",
		requestBuckets, "verb", "resource")
)

// Partitions.
var (
	partitions = gauge("kates_partitions",
		"Keys of partitions by state: idle, waiting, ready, running or resting. Ready is the depth of the queue.",
		"watch", "state")
	partitionQueueAge = gauge("kates_partition_queue_age_seconds",
		"Time that the key waits for a worker which waits for longest. 0 if there is none.", "watch")
)

// Calls of the function of a Run, a RunEach or a controller.
var (
	reconciles = counter("kates_reconciles_total",
		"Calls of the function of a Run, a RunEach or a controller that have returned, by result.", "loop", "result")
	reconcileRetries = counter("kates_reconcile_retries_total",
		"Calls after a failed one for the same key.", "loop")
	reconcileDuration = histogram("kates_reconcile_duration_seconds",
		"Time that a call takes.", callBuckets, "loop")
	reconcileQueue = histogram("kates_reconcile_queue_duration_seconds",
		"Time that a key was due before its call, and waited for a worker.", callBuckets, "loop")
	reconcileWorkers = gauge("kates_reconcile_workers",
		"Calls that may run at a time.", "loop")
	reconcilesRunning = gauge("kates_reconciles_running",
		"Calls that run now.", "loop")
	reconcileLongest = gauge("kates_reconcile_longest_running_seconds",
		"Time since the call began that runs for longest. 0 if none runs.", "loop")
	reconcileFailing = gauge("kates_reconcile_failing_keys",
		"Keys whose last call has failed.", "loop")
	reconcileAttempts = gauge("kates_reconcile_failing_attempts",
		"Failed calls in a row of the key that has most of them, of the 100 keys that are looked at.", "loop")
)

// Graphs of package derive.
var (
	derivedUpdates = counter("kates_derived_updates_total",
		"Updates of the graph.", "graph")
	derivedImpure = counter("kates_derived_impure_total",
		"Findings of the graph's audit: a function does not give again what it gave.", "graph")
	derivedEntries = gauge("kates_derived_entries",
		"Valid entries of the node. For ByLabels and BySelector: selections that were looked up.", "graph", "node")
	derivedInvalid = gauge("kates_derived_invalid_entries",
		"Invalid entries of the node: its function has failed, or a key is there twice.", "graph", "node")
	derivedRuns = counter("kates_derived_runs_total",
		"Runs of the node's functions.", "graph", "node")
	derivedEqual = counter("kates_derived_equal_runs_total",
		"Runs that gave what was there: runs for nothing.", "graph", "node")
	derivedSeconds = counter("kates_derived_seconds_total",
		"Time that the node has taken.", "graph", "node")
)

// Leases. They have no label, because a Lease is an object.
var (
	leaderElections = gauge("kates_leader_elections",
		"Elections of open runs.")
	leaderLeading = gauge("kates_leader_leading",
		"Elections in which this replica leads.")
	leaderErrors = gauge("kates_leader_errors",
		"Elections whose Lease cannot be read or written now, or was lost with an error.")
	shardGroups = gauge("kates_shard_groups",
		"Groups of shards of open runs.")
	shardMemberships = gauge("kates_shard_memberships",
		"Groups of shards of which this replica is a member.")
	shardMembers = gauge("kates_shard_members",
		"Members of these groups that this replica sees, itself included.")
	shardErrors = gauge("kates_shard_errors",
		"Groups of shards of which this replica cannot be a member now, or whose Lease it cannot renew.")
)
