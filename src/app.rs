//! What a request needs: settings, database, clock, gateway, tasks. Built once, shared by all.
