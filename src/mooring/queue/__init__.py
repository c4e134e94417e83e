"""Who is next: active, backoff, parked and gated pods, and the events that move them."""
