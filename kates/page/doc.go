// Package page is a status page for programs on kates: it says why a snapshot is late, wrong or
// expensive.
//
//	status := page.New()
//	defer status.Close()
//	client, err := kates.NewClient(config, kates.WithObserver(status))
//	...
//	mux.Handle("/debug/kates/", status)
//
// Nothing else is needed. The page is about all clients that have it as an observer, the clusters
// of a fleet included ([Page.Fleet]). It works below any path that ends in a slash, with or
// without [http.StripPrefix], and opens no listener.
//
// [Page.Derived] adds the graphs of package derive.
//
// The first page lists what is wrong: what it means, since when, and what to do. The others have
// the details: queries, streams, own writes, partitions, loops, graphs, leaders, requests, the
// last snapshots, and the objects, each as the snapshot, the watch and the own writes have it. Every
// page is JSON, too: with ?format=json, or for who accepts application/json.
//
// # What it costs
//
// Nothing per event. It copies some names for each snapshot, counts each request, and asks for a
// report ([inspect.Of]) every 10 seconds, or each second while somebody looks. A page of 100,000
// objects reads all names, and makes what it shows. What the page remembers has a bound.
//
// # Who may look
//
// The page changes nothing: it answers GET and HEAD alone. But it shows objects, so it is for
// those who may read what the program reads. Mount it where they alone come: on a listener of
// localhost, reached by kubectl port-forward, or behind a handler that authenticates.
//
// Data of Secrets is never shown, whatever Go type they have, nor are annotations in which there
// are copies of it. [Redact] hides more. A page that another site opens in a reader's browser gets
// nothing: requests that come from a script or a frame of another site are refused, and so are
// those for a host name that was not named ([Hosts]), as in DNS rebinding. Its
// Content-Security-Policy lets it load nothing but its own style sheet and script.
//
// docs/status-page.md has pictures, and says what each warning means.
package page
