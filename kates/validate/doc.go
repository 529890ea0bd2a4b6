// Package validate validates custom objects against the schema of their CustomResourceDefinition,
// before they are sent, as the API server does on a create: types and formats, required fields,
// list types, embedded objects, and the rules in x-kubernetes-validations. Defaults are filled in
// first, on a copy. Name and namespace may be missing. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation.
//
// [Validator] is the type to start from. It is a module of its own, because it needs the sources
// of the API server. It is for programs that read objects from files, or that read them from a
// cluster whose schema has become stricter since. Who just writes an object needs none: the server
// validates, also in a dry run (kates.DryRun).
//
// The server does more: it removes fields that the schema does not have, and compares an update
// with the object before (rules with oldSelf). That is not done here.
package validate
