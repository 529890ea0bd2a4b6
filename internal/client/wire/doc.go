// Package wire sends requests to an API server and reads the answers: it lists and watches
// resources in the form that a stream wants (whole objects, metadata alone, or Go types decoded
// straight from the bytes), and sends the writes whose answers tell more than a dynamic client
// shows. Package connection brings the requests to the server.
//
// [Server] is the type to start from; [Dynamic] does the same as far as a dynamic.Interface can.
// Package frames cuts answers into objects, package intern lets objects share memory. This package
// knows nothing of queries, own writes or the caller's values.
package wire
