// Package katestest is the test kit for programs that use kates. A unit test gets a client over an in-memory API in one line:
//
//	client := katestest.NewClient(t, service, slice)
//
// Start from [NewClient]; [New] returns the [Fake] itself, for custom kinds, for reactors that inject errors, and for writes
// that are not the client's own:
//
//	fake := katestest.New(t,
//		katestest.WithKinds(katestest.Kind{APIVersion: "getambassador.io/v3alpha1", Kind: "Host"}),
//		katestest.WithManifests(yaml))
//	fake.Client  // what the program under test gets
//	fake.Dynamic // what the rest of the world uses
//
// The fake is client-go's k8s.io/client-go/dynamic/fake as it is, behind a RESTMapper that knows every kind of client-go's
// scheme, and whatever kinds are added. That fake is not an API server. It
//
//   - sets no uid, resourceVersion, generation, creationTimestamp or managedFields, and takes generateName for the name "";
//   - knows no conflicts, preconditions, finalizers, grace periods, defaults or validation; dry runs persist; UpdateStatus
//     replaces the whole object; DeleteCollection does nothing;
//   - fails server-side apply and strategic merge patches;
//   - takes a subresource for the object itself: the client refuses all but the status ([kates.ErrSubresourceNotSupported]);
//   - keeps the versions of a group apart: what is written as apps/v1 is not found as apps/v1beta1;
//   - ignores field selectors in lists and every selector in watches: the client filters by itself, fields by their path in the
//     object;
//   - has untyped objects only: the functions of a [kates.Query] are given *Unstructured, where a real client gives them the field's
//     Go type;
//   - has no bookmarks, and loses a delete that falls between a list and its watch;
//   - panics in the writer when a watch has a hundred unread events.
//
// On it the guarantees of package kates hold for one writer at a time. A test that is about conflicts, apply or several
// writers needs a real API server.
//
// # Faults
//
// What a program does when its API server is slow, refuses, or goes away is tested with a client that goes through [Faults],
// a transport that holds, refuses, loses, delays, stalls, cuts, truncates and corrupts requests by verb, resource and count,
// or by chance; and with [Network], connections that are frozen (half-open), reset, refused and delayed. Both record what
// happened, let a test wait for it without sleeping, and work within a synctest bubble. They know nothing of kates: any
// client made of a rest.Config can be tested so.
package katestest
