// Package katestest is the test kit for programs that use kates. Start from [NewServer], an API
// server in memory, or, if a test only reads a few objects, from [NewClient].
//
// # The server in memory
//
//	server := katestest.NewServer(t, katestest.WithManifests(yaml))
//	client := server.Client(t)   // a kates client
//	config := server.Config      // for any other client: client-go's, controller-runtime's
//
// A [Server] speaks HTTP over connections in memory, and keeps a real API server's rules: one
// growing sequence of versions, UIDs, generations, conflicts, preconditions, dry runs, managed
// fields and server-side apply, all patches, status and scale subresources, finalizers and grace
// periods, selectors, pages, streamed lists, watches with bookmarks, and 410 after
// [Server.Compact]. Custom kinds come from their definitions, with defaults, pruning, validation,
// several versions and selectable fields. Namespaces that are deleted are emptied, and objects
// whose owners are gone are collected; [WithoutControllers] leaves that to the test, as a lone
// kube-apiserver does. Inside a synctest bubble its time is the bubble's.
//
// One suite of requests runs on it and on the real kube-apiserver, and both must answer alike; so
// must they for random programs of requests. Known differences:
//
//   - the rules of a schema (x-kubernetes-validations) are not checked;
//   - nobody is refused: there is no authentication, authorization or admission webhook;
//   - what needs a node is missing: logs, exec, attach, port-forward;
//   - reviews of access and of tokens, which store nothing, are missing;
//   - it keeps some 10,000 versions: who asks for an older one is answered 410;
//   - of built-in kinds, only what is common to all is validated, and what users meet most: names,
//     labels, owners, data, selectors, and what never changes in pods, workloads and secrets; their
//     defaults are those of workloads, services, volumes, secrets and events;
//   - OpenAPI (v3 alone) has the schemas of custom kinds with definitions, and nothing else;
//   - versions of one custom kind have the same content: there are no conversion webhooks.
//
// # The fake
//
// [NewClient] is a client of client-go's fake, in one line:
//
//	client := katestest.NewClient(t, service, slice)
//
// [New] returns the [Fake] itself, for custom kinds, for reactors that inject errors, and for
// writes by other programs:
//
//	fake := katestest.New(t,
//		katestest.WithKinds(katestest.Kind{APIVersion: "getambassador.io/v3alpha1", Kind: "Host"}),
//		katestest.WithManifests(yaml))
//	fake.Client  // what the program under test gets
//	fake.Dynamic // what the rest of the world uses
//
// The fake is client-go's k8s.io/client-go/dynamic/fake, unchanged, behind a RESTMapper that
// knows every kind of client-go's scheme and the kinds that are added. That fake is not an API
// server. It
//
//   - sets no uid, resourceVersion, generation, creationTimestamp or managedFields, and ignores
//     generateName, so that the name stays "";
//   - knows no conflicts, preconditions, finalizers, grace periods, defaults or validation; dry
//     runs persist; UpdateStatus replaces the whole object; DeleteCollection does nothing;
//   - fails server-side apply and strategic merge patches;
//   - treats a subresource as the object itself: the client refuses all subresources but the
//     status ([kates.ErrSubresourceNotSupported]);
//   - keeps the versions of a group apart: an object written as apps/v1 is not found as
//     apps/v1beta1;
//   - ignores field selectors in lists and every selector in watches: the client filters by
//     itself. It refuses the fields that a server refuses for built-in kinds. For other kinds every
//     field is selectable, by its path in the object;
//   - stores what a kind's schema does not have. But the client drops what the Go type of a
//     built-in kind does not have from each status that it writes ([kates.ErrDropped]);
//   - has untyped objects only: the functions of a [kates.Query] get *Unstructured, where a real
//     client gives them the field's Go type;
//   - panics in the writer when a watch has a hundred unread events, which another program can make
//     at once, and the client cannot.
//
// The client keeps versions and UIDs of its own beside what the fake has, and shows them to nobody:
// objects are in snapshots, and are returned by writes, as the fake has them. So the guarantees of
// package kates hold on it, and its lists, watches and writes are each one action of the fake. A
// watch that a reactor returns may be driven by the test. A test of conflicts or of apply needs a
// [Server], or a real API server, which the module
// github.com/kates-go/kates/kates/katestest/apiserver starts. testdata/bare.gaps lists the
// requests that the fake answers otherwise than a real server.
//
// # Faults
//
// [Faults] and [Network] test what a program does when its API server is slow, refuses, or goes
// away. [Faults] is a transport that holds, refuses, loses, delays, stalls, cuts, truncates and
// corrupts requests, chosen by verb, resource and count, or by chance. [Network] freezes
// connections (half-open), and resets, refuses and delays them. Both record what happened, let a
// test wait for it without sleeping, and work inside a synctest bubble. They know nothing of
// kates: they work with any client made from a rest.Config.
//
// # Assertions
//
// [Until] waits for a snapshot, [NewSequence] records those of a script, and [Golden] compares
// them with a file. [Settles] shows that a program comes to rest on a [Server], or the loop that
// it is in. [CrashAnywhere] stops it before and after each of its writes. [Derives] shows that a
// graph of package derive has what an evaluation from scratch gives. docs/testing.md has more.
package katestest
